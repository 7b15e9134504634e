// KeptParts: the newest versions of a shard's blocks, kept in memory by the shard's process and by
// its standby, so that a run can continue from one of them when a process is lost.
#pragma once

#include <map>
#include <vector>

#include "core/checkpoint_part.h"
#include "wire/control.h"

namespace drover {

class KeptParts {
 public:
  // Replaces a part of the same version that an earlier incarnation of the coordinator had made.
  void keep(CheckpointPart part, uint64_t incarnation) {
    const Version version = part.version;
    parts_.insert_or_assign(version, Kept{incarnation, std::move(part)});
  }
  // Drops versions before `least`.
  void drop_before(Version least) { parts_.erase(parts_.begin(), parts_.lower_bound(least)); }
  // Drops all other parts: the run continues from `kept`, and may make different later versions.
  void keep_only(const KeptVersion& kept) {
    std::erase_if(parts_, [&](const auto& each) {
      return KeptVersion{each.first, each.second.incarnation} != kept;
    });
  }
  void clear() { parts_.clear(); }

  // Null if the part is not kept here.
  const CheckpointPart* find(const KeptVersion& kept) const {
    const auto found = parts_.find(kept.version);
    return found != parts_.end() && found->second.incarnation == kept.incarnation
               ? &found->second.part
               : nullptr;
  }
  // Oldest first.
  std::vector<KeptVersion> versions() const {
    std::vector<KeptVersion> all;
    for (const auto& [version, kept] : parts_) all.push_back({version, kept.incarnation});
    return all;
  }

 private:
  struct Kept {
    uint64_t incarnation = 0;  // of the coordinator
    CheckpointPart part;
  };
  std::map<Version, Kept> parts_;
};

}  // namespace drover
