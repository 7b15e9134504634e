// KeptParts: the newest versions of a shard's blocks, kept in memory by the shard's process and by
// its standby, so that a run can go on from one of them when a shard is lost.
#pragma once

#include <map>
#include <vector>

#include "core/checkpoint_part.h"
#include "wire/control.h"

namespace drover {

class KeptParts {
 public:
  // In place of one of the same version, made in an earlier life.
  void keep(CheckpointPart part, uint64_t life) {
    const Version version = part.version;
    parts_.insert_or_assign(version, Kept{life, std::move(part)});
  }
  // Versions before `least` are not needed any more.
  void drop_before(Version least) { parts_.erase(parts_.begin(), parts_.lower_bound(least)); }
  // Whatever else there is belongs to a past that has not come to be.
  void keep_only(const KeptVersion& kept) {
    std::erase_if(parts_, [&](const auto& each) {
      return KeptVersion{each.first, each.second.life} != kept;
    });
  }
  void clear() { parts_.clear(); }

  // Null: it is not here.
  const CheckpointPart* find(const KeptVersion& kept) const {
    const auto found = parts_.find(kept.version);
    return found != parts_.end() && found->second.life == kept.life ? &found->second.part : nullptr;
  }
  // Oldest first.
  std::vector<KeptVersion> versions() const {
    std::vector<KeptVersion> all;
    for (const auto& [version, kept] : parts_) all.push_back({version, kept.life});
    return all;
  }

 private:
  struct Kept {
    uint64_t life = 0;
    CheckpointPart part;
  };
  std::map<Version, Kept> parts_;
};

}  // namespace drover
