// Races in global memory: two warps touch one word in the same launch, one of them writes, and nothing orders the two.
//
// Within a block or a cluster the vector clocks say what is ordered (clocks.h). Blocks can only order their accesses through
// global memory itself: one does a fence or an atomic after its access, and the other an atomic, a fence or a load that
// looks for changes (volatile, acquire, ...) before its own. Whether the second really saw the first is not followed up:
// where both are there, no race is reported. So a race can be missed, but a kernel that is right is not reported.
//
// Each word has its last write and its last two reads. All CPU threads share the table, which is slow: global-race is off
// unless it is asked for.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace sim {

class GlobalRaces {
 public:
  struct Access {
    uint64_t block = 0;    ///< of the grid
    uint64_t cluster = 0;  ///< whose clocks have actor and time
    uint32_t actor = 0, time = 0;
    uint32_t op = 0;
    bool write = false, strong = false;
    uint64_t at = 0;  ///< given by note()
  };

  explicit GlobalRaces(uint64_t blocks) : synchronised_(new std::atomic<uint64_t>[blocks]()) {}

  /// The block does a fence, an atomic or a load that looks for changes.
  void synchronises(uint64_t block) { synchronised_[block] = ++now_; }

  /// Notes an access to a word. `happens_before`: whether an earlier one of the same cluster happens before it. Returns the
  /// earlier access that it races with.
  template <class HappensBefore>
  std::optional<Access> note(uint64_t word, Access access, const HappensBefore& happens_before) {
    Shard& shard = shards_[word / 8 % shards_.size()];
    const std::lock_guard lock(shard.mutex);
    Word& known = shard.words[word];
    access.at = ++now_;
    std::optional<Access> found;
    const auto look = [&](const Access& earlier) {
      if (!earlier.at || (earlier.strong && access.strong)) return;
      if (earlier.cluster == access.cluster && (earlier.actor == access.actor || happens_before(earlier))) return;
      if (synchronised_[earlier.block] > earlier.at && synchronised_[access.block] > earlier.at) return;
      found = earlier;
    };
    look(known.write);
    if (access.write) {
      look(known.read[0]);
      look(known.read[1]);
      known.write = access;
    } else {
      const Access& last = known.read[0];
      if (last.cluster != access.cluster || last.actor != access.actor) known.read[1] = last;
      known.read[0] = access;
    }
    return found;
  }

 private:
  struct Word {
    Access write, read[2];
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<uint64_t, Word> words;
  };
  std::array<Shard, 64> shards_;
  std::atomic<uint64_t> now_ = 0;
  std::unique_ptr<std::atomic<uint64_t>[]> synchronised_;  ///< by block: when it last was
};

}  // namespace sim
