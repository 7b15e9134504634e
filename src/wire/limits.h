// Limits on everything a peer may ask of us, checked before anything is allocated.
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
inline constexpr uint32_t kAnyIndex = kWorkersMax;  // in place of a worker's index: a free one
inline constexpr uint32_t kShardsMax = 1'000;
inline constexpr uint32_t kMpiRankMax = kWorkersMax + kShardsMax;
inline constexpr uint32_t kMpiTagMax = 32'767;  // every MPI library has so many
inline constexpr uint32_t kTensorsMax = 100'000;
inline constexpr uint32_t kDimensionsMax = 64;  // of one tensor
inline constexpr uint32_t kBlocksMax = 1'000'000;
inline constexpr uint64_t kParametersMax = uint64_t{1} << 36;
inline constexpr uint32_t kSamplesMax = 1u << 24;  // in one gradient
// Where workers need not wait for all blocks, shards may be ahead of each other: the coordinator
// decides so many steps ahead of the slowest, shards close so many more undecided, and nobody
// pushes further ahead of a block than both together.
inline constexpr uint64_t kDecidedAheadMax = 32;
inline constexpr uint64_t kUndecidedMax = 16;
inline constexpr uint64_t kPushedAheadMax = 64;
// Where versions are kept in memory: a shard closes no step that lies so far behind the decision it
// knows of, and so keeps at most two versions more than this.
inline constexpr uint64_t kKeptAheadMax = 2;
inline constexpr uint64_t kKeptMax = 16;  // versions that a process may say it keeps
// Offers of one block by one worker that it has neither sent nor withdrawn: what its kernel still
// holds of steps that have closed without it.
inline constexpr size_t kOffersOpenMax = 64;
// Ten years: whatever a step, a run or a limit takes, it is less; and sums of some fit their type.
inline constexpr int64_t kDurationMaxNs = int64_t{10} * 365 * 24 * 3600 * 1'000'000'000;
inline constexpr uint32_t kSlowRulesMax = 1'000;
inline constexpr uint32_t kTextBytesMax = 64u << 10;  // a name, an address, a reason

}  // namespace drover
