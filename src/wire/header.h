// FrameHeader: the 64 bytes before everything that travels between peers.
//
// Layout on the wire, little-endian:
//    0 u32 magic "DRV1"   4 u8 protocol version   5 u8 type   6 u16 flags
//    8 u64 run           16 u64 step             24 u64 version
//   32 u32 worker        36 u32 block            40 u32 samples   44 u32 length of the payload in
//   bytes 48 u32 answer        52 u32 place            56 u8 number type, 3 zero bytes
//   60 u32 CRC-32 of the first 60 bytes
//
// Control messages (wire/control.h) and raw blocks of float32 both follow such a header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/ids.h"
#include "core/result.h"
#include "wire/number_type.h"

namespace drover {

inline constexpr uint8_t kProtocolVersion = 5;
inline constexpr size_t kHeaderBytes = 64;

enum class FrameType : uint8_t {
  // Control: the payload is an encoded message of wire/control.h.
  kControl = 1,
  // Blocks, worker to shard: an offer says a block is ready; the shard grants it when it wants the
  // bytes; every
  // push is answered.
  kOffer = 2,   // step, block, samples; a small block travels inline as its payload
  kGrant = 3,   // step, block
  kBlock = 4,   // step, block, samples, payload
  kAnswer = 5,  // step, block, answer, version: what the shard's block is at now
  // Blocks, shard to worker.
  // version: the least wanted; step: the puller's number for this request; place: where not all
  // blocks are waited for, how many kParameters of this shard have come so far
  kPull = 6,
  kParameters = 7,  // block, version, payload; step: the number of the request it answers
  kGone = 8,  // version: the newest snapshot, the one pulled is no longer there; step: as above
  // The order to stop: nothing up to `step` is wanted any more. Monotonic, may be repeated.
  kStop = 9,
  // Worker to shard: I have copied what you published at `place`.
  kTaken = 10,
  // Worker to shard: I push nothing more for steps before `version`. A pull says so too, unless it
  // has kNotDoneFlag.
  kDone = 11,
  // Anybody to anybody: I live, though I have nothing to say.
  kAlive = 12,
  // Shard to its standby: floats of what it keeps (see Replica). version; block: which of those
  // announced; place: which of its floats; payload
  kReplica = 13,
};

enum FrameFlags : uint16_t {
  // On kPull, kParameters: the parameters for evaluation, of exactly this version.
  kSnapshotFlag = 1,
  // No payload follows. On kOffer: the block lies in the memory that its worker shares, in gradient
  // buffer number `place`. On kParameters: in the memory that the shard shares, at `place`.
  kInPlaceFlag = 2,
  // On kPull: the puller is still computing, and will push for the step before `version`.
  kNotDoneFlag = 4,
};

enum class Answer : uint32_t {
  kAccepted = 0,
  kLate = 1,       // the block has closed; `version` tells the step it is in now
  kNotFinite = 2,  // NaN or infinity
  kDuplicate = 3,  // this worker has pushed this block already
  kOutlier = 4,    // far longer than what others push: it is not used
};

std::string_view name_of(Answer answer);

// In place of a step: the block holds initial parameters.
inline constexpr Step kInitialStep = ~Step{0};
// In place of a worker: the evaluator.
inline constexpr WorkerId kEvaluator = ~WorkerId{0};

struct FrameHeader {
  FrameType type = FrameType::kControl;
  uint16_t flags = 0;
  RunId run = 0;
  Step step = 0;
  Version version = 0;
  WorkerId worker = 0;
  BlockId block = 0;
  uint32_t samples = 0;
  uint32_t length = 0;
  Answer answer = Answer::kAccepted;
  uint32_t place = 0;                             // in shared memory
  NumberType number_type = NumberType::kFloat32;  // of a block's payload

  bool operator==(const FrameHeader&) const = default;
};

using HeaderBytes = std::array<std::byte, kHeaderBytes>;

HeaderBytes encode_header(const FrameHeader& header);

// Refuses anything that is not a whole, undamaged header of our protocol version with a payload
// within the limit of its type, and says which it was.
Result<FrameHeader> decode_header(std::span<const std::byte, kHeaderBytes> bytes);

}  // namespace drover
