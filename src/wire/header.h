// FrameHeader: the 64 bytes before every payload between peers.
//
// Layout on the wire, little-endian:
//    0 u32 magic "DRV1"   4 u8 protocol version   5 u8 type   6 u16 flags
//    8 u64 run           16 u64 step             24 u64 version
//   32 u32 worker        36 u32 block            40 u32 samples   44 u32 length of the payload in
//   bytes 48 u32 answer        52 u32 place            56 u8 number type, 3 zero bytes 60 u32
//   CRC-32 of the first 60 bytes
//
// The payload is a control message (wire/control.h) or the raw numbers of a block.
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

inline constexpr uint8_t kProtocolVersion = 6;
inline constexpr size_t kHeaderBytes = 64;

enum class FrameType : uint8_t {
  // Control: the payload is an encoded message of wire/control.h.
  kControl = 1,
  // Gradients, worker to shard. The worker offers a block that is ready, the shard grants it when
  // it
  // can receive the payload, the worker sends the block, and the shard answers every block.
  kOffer = 2,   // step, block, samples; a small block is sent inline as the payload
  kGrant = 3,   // step, block
  kBlock = 4,   // step, block, samples, payload
  kAnswer = 5,  // step, block, answer, version: current version of the shard's block
  // Parameters, shard to worker.
  // version: the least version wanted; step: the puller's number of this request; place, with
  // partial pulls: number of kParameters frames received from this shard so far
  kPull = 6,
  kParameters = 7,  // block, version, payload; step: the number of the answered request
  // The requested snapshot does not exist any more. version: the newest snapshot; step: as above
  kGone = 8,
  // The stop order: gradients up to `step` are not wanted any more. Monotonic, may be repeated.
  kStop = 9,
  // Worker to shard: the worker has copied the parameters published at `place`.
  kTaken = 10,
  // Worker to shard: the worker pushes nothing more for steps before `version`. A pull has the same
  // meaning, unless it has kNotDoneFlag.
  kDone = 11,
  // Heartbeat, in both directions.
  kAlive = 12,
  // Shard to its standby: floats of a replica (see Replica). version; block: index of the announced
  // block; place: kind of floats; payload
  kReplica = 13,
};

enum FrameFlags : uint16_t {
  // On kPull and kParameters: the parameters for evaluation, of exactly this version.
  kSnapshotFlag = 1,
  // No payload follows. On kOffer: the block is in the worker's shared memory, in gradient buffer
  // number `place`. On kParameters: the block is in the shard's shared memory, at `place`.
  kInPlaceFlag = 2,
  // On kPull: the worker is not done with the step before `version`: it still computes and pushes.
  kNotDoneFlag = 4,
  // On kOffer without a payload: this worker has no gradient for the block in this step. It counts
  // as an answer of the worker, and not in the mean.
  kNothingFlag = 8,
  // On kOffer, kBlock: the floats are not a gradient but values that replace the block's.
  kValuesFlag = 16,
  // On kOffer, kBlock: the block closes only when a worker has said how (Release).
  kHoldFlag = 32,
};

// How a push is to be used; the flags above.
inline constexpr uint16_t kPushFlags = kNothingFlag | kValuesFlag | kHoldFlag;

enum class Answer : uint32_t {
  kAccepted = 0,
  kLate = 1,       // the block has closed; `version` is its current step
  kNotFinite = 2,  // refused: NaN or infinity
  kDuplicate = 3,  // refused: this worker has already pushed this block
  kOutlier = 4,    // refused: the norm is much larger than those of other workers
};

std::string_view name_of(Answer answer);

// As a step: the block has initial parameters.
inline constexpr Step kInitialStep = ~Step{0};
// As a worker: the evaluator.
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

// An error, which says why, unless the header is undamaged, of this protocol version, and has a
// payload within the limit of its type.
Result<FrameHeader> decode_header(std::span<const std::byte, kHeaderBytes> bytes);

}  // namespace drover
