// Shared memory of one block. For each word it is known which warp wrote it and which warps read it last, and when.
//
// Two accesses by different warps, one of them a write, are a race unless the first happens before the second (clocks.h; PTX
// ISA 8, "Memory Consistency Model": neither happens before the other). As FastTrack (Flanagan and Freund, 2009) does, one
// word remembers its last write and its last two reads; of other reads since that write, by the block's own warps, only which
// warps they were and the earliest of their times: if that does not happen before a write, the read does not, either.
// Warps are numbered through the cluster: others' warps may come here too (PTX ISA 5.1.6, "Shared State Space").
//
// Two lanes of one warp that touch a word by different instructions race, too, if the warp's lanes have not met in between: the
// warp's time goes on where they meet (__syncwarp, shuffles, barriers), so their accesses have the same time.
//
// An asynchronous access (cp.async, bulk copies, wgmma's operands) is under way from the instruction that issues it until
// somebody has waited for its completion. In between, nobody may write what it reads or touch what it writes, not even
// the thread that issued it (PTX ISA 9.7.9.25, "Asynchronous copy"). At its end it becomes a read or a write by the actor
// and at the time that its completion mechanism gives it, which must happen before others touch the word.
//
// Bulk copies and wgmma touch units of four words alike. A unit whose words have the same past has one record for all four,
// until an access touches a part of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "executor/clocks.h"
#include "executor/program.h"

namespace sim {

class SharedMemory {
 public:
  /// The memory that is reserved for the system lies so far behind the block's own that a small overrun does not reach it.
  static constexpr uint32_t reserved_bytes = 1024;

  /// `first_warp`: the actor that is the block's first warp.
  SharedMemory(uint32_t bytes, const Clocks& clocks, uint32_t first_warp = 0, bool with_reserved = false)
      : size_(bytes),
        reserved_(with_reserved ? (bytes + 2 * reserved_bytes - 1) / reserved_bytes * reserved_bytes : 0),
        first_warp_(first_warp),
        clocks_(clocks) {
    words_.resize(with_reserved ? (reserved_ + reserved_bytes) / 4 : (bytes + 15) / 16 * 4);
    bytes_.resize(4 * words_.size());
  }

  /// A new block: nothing is written. The reserved memory is 0.
  void reset();

  std::byte* data() { return bytes_.data(); }
  uint32_t size() const { return size_; }
  uint32_t reserved() const { return reserved_; }
  bool contains(uint64_t address, uint32_t bytes) const {
    if (address < size_ && bytes <= size_ - address) return true;
    return reserved_ && address >= reserved_ && address + bytes <= reserved_ + reserved_bytes;
  }

  enum class Found {
    nothing,
    uninitialised,
    race_with_write,
    race_with_read,
    lanes_race_with_write,  ///< of the same warp
    lanes_race_with_read,
    write_under_way,
    read_under_way,
    unfenced  ///< the generic proxy wrote it, and there was no proxy fence since
  };
  struct Verdict {
    Found found = Found::nothing;
    uint32_t warp = 0, op = 0;  ///< of the other access; op may be some_op
    bool same_value = false;    ///< a race of two writes that changes nothing
  };
  static constexpr uint32_t some_op = 0xffffffff;  ///< which is not remembered
  /// `byte_mask`: the bytes of the word. `strong`: atomic, volatile and the like, which do not race with one another.
  /// `lanes`: of the warp, that touch the word; 0: not known. Where something is found, nothing is noted.
  Verdict read(uint32_t word, unsigned byte_mask, uint32_t warp, uint32_t op, bool strong, Mask lanes = 0);
  Verdict write(uint32_t word, unsigned byte_mask, uint32_t warp, uint32_t op, bool strong, Mask lanes = 0);
  /// Notes the access in spite of what was found: the kernel goes on.
  void read_anyway(uint32_t word, unsigned byte_mask, uint32_t warp, uint32_t op, bool strong, Mask lanes);
  void write_anyway(uint32_t word, unsigned byte_mask, uint32_t warp, uint32_t op, bool strong, Mask lanes);

  /// Of several words: number `word[i]` from `first` on, in it the bytes `byte_mask[i]`. They end at the first that may not be
  /// accessed, and give back its index, or `words`.
  int read(uint32_t first, const int32_t* word, const uint8_t* byte_mask, const Mask* lanes, int words, uint32_t warp,
           uint32_t op, bool strong, Verdict& verdict);
  int write(uint32_t first, const int32_t* word, const uint8_t* byte_mask, const Mask* lanes, int words, uint32_t warp,
            uint32_t op, bool strong, Verdict& verdict);

  /// Asynchronous accesses, of whole words; a copy may read a part of one. One write of a word can be under way, or any number
  /// of reads.
  /// `anyway`: in spite of what was found.
  Verdict begin_async_read(uint32_t word, uint32_t warp, uint32_t op, unsigned byte_mask = 0xf, bool anyway = false);
  Verdict begin_async_write(uint32_t word, uint32_t warp, uint32_t op, bool anyway = false);
  /// Their ends: from now on they are accesses by `warp` at `time`.
  void end_async_read(uint32_t word, uint32_t warp, uint32_t op, uint32_t time, unsigned byte_mask = 0xf);
  void end_async_write(uint32_t word, uint32_t warp, uint32_t op, uint32_t time);

  void end_async_writes(uint32_t first, int words, uint32_t warp, uint32_t op, uint32_t time, bool strong = false);

  /// Of units of four words, by their addresses; the reads are by the asynchronous proxy. What speaks against the access of a word
  /// is reported; if the report returns, it is noted in spite of that.
  using Units = std::span<const uint32_t>;
  using Report = std::function<void(uint32_t word, const Verdict&)>;
  void begin_async_reads(Units units, uint32_t warp, uint32_t op, const Report& report);
  void begin_async_writes(Units units, uint32_t warp, uint32_t op, const Report& report);
  void end_async_reads(Units units, uint32_t warp, uint32_t op, uint32_t time);
  void end_async_writes(Units units, uint32_t warp, uint32_t op, uint32_t time);

  /// The actor that wrote the word last, and by which operation.
  std::pair<uint32_t, uint32_t> last_writer(uint32_t word) const {
    const Access& write = (words_[word].under_way & joined ? units_[word / unit_words].word : words_[word]).write;
    return {write.warp, write.op};
  }

  /// Whether the asynchronous proxy sees the word's last write: a proxy fence since then happens before this.
  bool visible_to_async(uint32_t word, uint32_t warp) const {
    const Access& write = (words_[word].under_way & joined ? units_[word / unit_words].word : words_[word]).write;
    return clocks_.fenced(warp, write.warp, write.time);
  }

 private:
  struct Access {
    uint32_t time = 0, op = 0;
    uint16_t warp = 0;
    uint8_t bytes = 0;  ///< that it touched; 0: there was no such access
    bool strong = false;
    bool operator==(const Access&) const = default;
  };
  /// All zeros where nothing has happened: so a block starts.
  struct Word {
    Access write, reads[2];                ///< the last write, and the last two warps' reads, the later one first
    Mask write_lanes = 0, read_lanes = 0;  ///< of the last write; of the later reader, at that time
    uint32_t more_readers = 0;             ///< since the last write: other warps of the block, one bit each ...
    uint32_t more_since = 0;               ///< ... and ~ the earliest time of their reads
    uint8_t written = 0;                   ///< bytes that hold a value, one bit each
    uint8_t under_way = 0;                 ///< of asynchronous accesses: `writing` or `reading`; the rest is in async_
    bool for_unit = false;                 ///< it is the record of all words of a unit
    bool operator==(const Word&) const = default;
  };
  /// `joined`: its unit has the record for all of its words; nothing else is true of this one.
  static constexpr uint8_t writing = 1, reading = 2, joined = 4;
  /// The asynchronous accesses of a word; there are none of these before the first such access.
  struct Async {
    uint32_t op = 0;     ///< of the write, or of the last read that began
    uint16_t reads = 0;  ///< how many are under way
    uint16_t warp = 0;
    bool operator==(const Async&) const = default;
  };
  struct alignas(64) Unit {
    Word word;
    Async async;
  };
  static constexpr uint32_t unit_words = 4;

  struct Passed {  ///< the last write that a word was found to have; neighbours mostly have the same
    uint32_t time = 0, warp = UINT32_MAX;
  };
  bool begin_read(Word& word, Async& async, uint32_t warp, uint32_t op, Passed& passed, Verdict& verdict) const;
  bool begin_write(Word& word, Async& async, uint32_t warp, uint32_t op, Verdict& verdict) const;
  void end_read(Word& word, Async& async, uint32_t warp, uint32_t op, uint32_t time);
  static void end_write(Word& word, uint32_t warp, uint32_t op, uint32_t time, bool strong);

  Verdict check_read(const Word& word, unsigned byte_mask, uint32_t warp, bool strong) const;
  Verdict check_write(const Word& word, unsigned byte_mask, uint32_t warp, bool strong) const;
  Verdict check_more_readers(const Word& word, uint32_t warp) const;
  void note_read(Word& word, unsigned byte_mask, uint32_t warp, uint32_t op, uint32_t time, bool strong, Mask lanes);
  static void note_write(Word& word, unsigned byte_mask, uint32_t warp, uint32_t op, uint32_t time, bool strong,
                         Mask lanes);
  /// `lanes_before`: of the warp, in its earlier access.
  static bool lanes_race(const Access& before, Mask lanes_before, unsigned byte_mask, uint32_t warp, uint32_t time,
                         bool strong, Mask lanes) {
    return before.warp == warp && before.time == time && (byte_mask & before.bytes) && !(strong && before.strong) &&
           lanes_before && lanes && ((lanes_before | lanes) & ((lanes_before | lanes) - 1));
  }
  Async& async(uint32_t word) {
    if (async_.empty()) async_.resize(words_.size());
    return async_[word];
  }
  /// The word on its own.
  Word& single(uint32_t word) {
    if (words_[word].under_way & joined) [[unlikely]]
      part(word);
    return words_[word];
  }
  void part(uint32_t word);
  /// The unit of four words from `first` on, if they are joined, or (`join`) can be; else null.
  Unit* unit_at(uint32_t first, bool join) {
    if (!units_.empty() && units_[first / unit_words].word.for_unit) return &units_[first / unit_words];
    return join ? joined_unit(first) : nullptr;
  }
  Unit* joined_unit(uint32_t first);

  std::vector<std::byte> bytes_;
  std::vector<Word> words_;
  std::vector<Async> async_;
  std::vector<Unit> units_;   ///< none before the first is joined
  uint32_t size_, reserved_;  ///< its own bytes; where the reserved ones begin, or 0
  uint32_t first_warp_;
  const Clocks& clocks_;
};

/// Lanes' addresses of one access, as far as they decide what it costs.
struct SharedCost {
  int wavefronts = 0;  ///< passes through shared memory
  int ideal = 0;       ///< without a bank conflict
};

/// Of any set of lanes: `byte` is each lane's address, `bytes` the width of an access.
SharedCost shared_cost(const std::array<int64_t, warp_size>& byte, int bytes, Mask mask);

}  // namespace sim
