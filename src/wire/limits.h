// Limits on everything that a peer may send or request, checked before memory is allocated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/layout.h"

namespace drover {

inline constexpr uint32_t kControlBytesMax = 16u << 20;  // an encoded control message
// A control message of a peer that has not proved yet that it knows the token.
inline constexpr uint32_t kUnauthenticatedBytesMax = 256;
inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kProofBytes = 32;
inline constexpr uint32_t kBlockBytesMax = kBlockFloatsMax * sizeof(float);
inline constexpr uint32_t kInlineBytesMax = 16u << 10;  // a block this small travels with its offer
inline constexpr uint32_t kWorkersMax = 10'000;
inline constexpr uint32_t kAnyIndex = kWorkersMax;  // as a worker's index: any free one
inline constexpr uint32_t kShardsMax = 1'000;
inline constexpr uint32_t kMpiRankMax = kWorkersMax + kShardsMax;
inline constexpr uint32_t kMpiTagMax = 32'767;  // every MPI library has at least this many
inline constexpr uint32_t kTensorsMax = 100'000;
inline constexpr uint32_t kGroupsMax = 10'000;  // of tensors that are learned alike
inline constexpr uint32_t kDimensionsMax = 64;  // of one tensor
inline constexpr uint32_t kBlocksMax = 1'000'000;
inline constexpr uint64_t kParametersMax = uint64_t{1} << 36;
inline constexpr uint32_t kSamplesMax = 1u << 24;  // in one gradient
// With partial pulls, shards may be ahead of each other. The coordinator decides up to
// kDecidedAheadMax steps ahead of the slowest shard, a shard closes up to kUndecidedMax more steps
// without a decision, and a worker pushes up to kPushedAheadMax steps ahead of a block.
inline constexpr uint64_t kDecidedAheadMax = 32;
inline constexpr uint64_t kUndecidedMax = 16;
inline constexpr uint64_t kPushedAheadMax = 64;
// With a standby, the limit on steps that a shard closes without a decision. So a shard keeps at
// most kKeptAheadMax + 2 versions in memory.
inline constexpr uint64_t kKeptAheadMax = 2;
inline constexpr uint64_t kKeptMax = 16;  // kept versions that a process may report
// Open offers of one block by one worker. Old offers may still be in the worker's socket buffer
// after their steps have closed without it.
inline constexpr size_t kOffersOpenMax = 64;
// Ten years: more than any step, run or limit takes, and small enough that sums do not overflow.
inline constexpr int64_t kDurationMaxNs = int64_t{10} * 365 * 24 * 3600 * 1'000'000'000;
inline constexpr uint32_t kSlowRulesMax = 1'000;
inline constexpr uint32_t kTextBytesMax = 64u << 10;  // a name, an address, a reason

}  // namespace drover
