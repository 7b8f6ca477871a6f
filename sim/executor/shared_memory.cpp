#include "executor/shared_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace sim {

void SharedMemory::reset() {
  std::memset(static_cast<void*>(async_.data()), 0, async_.size() * sizeof(Async));
  if (units_.empty()) std::memset(static_cast<void*>(words_.data()), 0, words_.size() * sizeof(Word));
  for (size_t u = 0; u < units_.size(); ++u) {
    const bool stays_joined = units_[u].word.for_unit;
    if (!stays_joined) std::memset(static_cast<void*>(&words_[u * unit_words]), 0, unit_words * sizeof(Word));
    units_[u] = {};
    units_[u].word.for_unit = stays_joined;
  }
  if (!reserved_) return;
  std::fill(bytes_.begin() + reserved_, bytes_.end(), std::byte{0});
  for (uint32_t w = reserved_ / 4; w < words_.size(); ++w) words_[w].written = 0xf;
}

inline SharedMemory::Verdict SharedMemory::check_read(const Word& word, unsigned byte_mask, uint32_t warp,
                                                      bool strong) const {
  if (byte_mask & ~word.written) return {Found::uninitialised, 0, 0};
  const Access& write = word.write;
  if (write.warp != warp && (byte_mask & write.bytes) && !(strong && write.strong) &&
      !clocks_.happens_before(write.warp, write.time, warp))
    return {Found::race_with_write, write.warp, write.op};
  return {};
}

inline SharedMemory::Verdict SharedMemory::check_write(const Word& word, unsigned byte_mask, uint32_t warp,
                                                       bool strong) const {
  const auto races = [&](const Access& other) {
    return other.warp != warp && !(strong && other.strong) && (byte_mask & other.bytes) &&
           !clocks_.happens_before(other.warp, other.time, warp);
  };
  if (races(word.write)) return {Found::race_with_write, word.write.warp, word.write.op};
  for (const Access& read : word.reads)
    if (races(read)) return {Found::race_with_read, read.warp, read.op};
  if (word.more_readers && byte_mask == 0xf) return check_more_readers(word, warp);
  return {};
}

SharedMemory::Verdict SharedMemory::check_more_readers(const Word& word, uint32_t warp) const {
  for (uint32_t rest = word.more_readers; rest; rest &= rest - 1) {
    const uint32_t reader = first_warp_ + uint32_t(std::countr_zero(rest));
    if (reader != warp && !clocks_.happens_before(reader, ~word.more_since, warp))
      return {Found::race_with_read, reader, some_op};
  }
  return {};
}

inline void SharedMemory::note_read(Word& word, unsigned byte_mask, uint32_t warp, uint32_t op, uint32_t time,
                                    bool strong, Mask lanes) {
  Access& last = word.reads[0];
  if (last.warp != warp) {
    const Access& gone = word.reads[1];
    const uint32_t reader = uint32_t{gone.warp} - first_warp_;
    const bool counts = reader < 32 && gone.bytes && gone.warp != warp && !gone.strong;
    word.more_readers |= uint32_t{counts} << reader % 32;
    word.more_since = std::max(word.more_since, counts ? ~gone.time : 0);
    word.reads[1] = last;
    word.read_lanes = lanes;
  } else {
    word.read_lanes = last.time == time ? word.read_lanes | lanes : lanes;
  }
  last = {time, op, static_cast<uint16_t>(warp), static_cast<uint8_t>(byte_mask), strong};
}

inline void SharedMemory::note_write(Word& word, unsigned byte_mask, uint32_t warp, uint32_t op, uint32_t time,
                                     bool strong, Mask lanes) {
  word.write = {time, op, static_cast<uint16_t>(warp), static_cast<uint8_t>(byte_mask), strong};
  word.written |= byte_mask;
  word.write_lanes = lanes;
  word.more_readers = 0;
  word.more_since = 0;
}

SharedMemory::Verdict SharedMemory::read(uint32_t index, unsigned byte_mask, uint32_t warp, uint32_t op, bool strong,
                                         Mask lanes) {
  const int32_t word = 0;
  const auto bytes = static_cast<uint8_t>(byte_mask);
  Verdict verdict;
  read(index, &word, &bytes, &lanes, 1, warp, op, strong, verdict);
  return verdict;
}

SharedMemory::Verdict SharedMemory::write(uint32_t index, unsigned byte_mask, uint32_t warp, uint32_t op, bool strong,
                                          Mask lanes) {
  const int32_t word = 0;
  const auto bytes = static_cast<uint8_t>(byte_mask);
  Verdict verdict;
  write(index, &word, &bytes, &lanes, 1, warp, op, strong, verdict);
  return verdict;
}

int SharedMemory::read(uint32_t first, const int32_t* word, const uint8_t* byte_mask, const Mask* lanes, int words,
                       uint32_t warp, uint32_t op, bool strong, Verdict& verdict) {
  const uint32_t time = clocks_.now(warp);
  Passed passed;  // a write that no access of the warp races with; neighbours mostly have the same
  for (int i = 0; i < words; ++i) {
    const uint32_t index = first + uint32_t(word[i]);
    Word& w = words_[index];
    if (w.under_way) [[unlikely]] {
      single(index);
      if (w.under_way == writing) {
        verdict = {Found::write_under_way, async_[index].warp, async_[index].op};
        return i;
      }
    }
    if (w.write.warp != passed.warp || w.write.time != passed.time || w.written != 0xf) {
      verdict = check_read(w, byte_mask[i], warp, strong);
      if (verdict.found != Found::nothing) [[unlikely]]
        return i;
      if (lanes_race(w.write, w.write_lanes, byte_mask[i], warp, time, strong, lanes[i])) [[unlikely]] {
        verdict = {Found::lanes_race_with_write, warp, w.write.op};
        return i;
      }
      if (clocks_.happens_before(w.write.warp, w.write.time, warp) && !(w.write.warp == warp && w.write.time == time))
        passed = {w.write.time, w.write.warp};
    }
    note_read(w, byte_mask[i], warp, op, time, strong, lanes[i]);
  }
  return words;
}

int SharedMemory::write(uint32_t first, const int32_t* word, const uint8_t* byte_mask, const Mask* lanes, int words,
                        uint32_t warp, uint32_t op, bool strong, Verdict& verdict) {
  const uint32_t time = clocks_.now(warp);
  for (int i = 0; i < words; ++i) {
    const uint32_t index = first + uint32_t(word[i]);
    Word& w = words_[index];
    if (w.under_way && single(index).under_way) [[unlikely]] {
      verdict = {w.under_way == writing ? Found::write_under_way : Found::read_under_way, async_[index].warp,
                 async_[index].op};
      return i;
    }
    verdict = check_write(w, byte_mask[i], warp, strong);
    if (verdict.found != Found::nothing) [[unlikely]]
      return i;
    const Access& read = w.reads[0];
    if (w.write.op != op && lanes_race(w.write, w.write_lanes, byte_mask[i], warp, time, strong, lanes[i]))
        [[unlikely]] {
      verdict = {Found::lanes_race_with_write, warp, w.write.op};
      return i;
    }
    if (read.op != op && lanes_race(read, w.read_lanes, byte_mask[i], warp, time, strong, lanes[i])) [[unlikely]] {
      verdict = {Found::lanes_race_with_read, warp, read.op};
      return i;
    }
    note_write(w, byte_mask[i], warp, op, time, strong, lanes[i]);
  }
  return words;
}

void SharedMemory::read_anyway(uint32_t index, unsigned byte_mask, uint32_t warp, uint32_t op, bool strong,
                               Mask lanes) {
  note_read(single(index), byte_mask, warp, op, clocks_.now(warp), strong, lanes);
}

void SharedMemory::write_anyway(uint32_t index, unsigned byte_mask, uint32_t warp, uint32_t op, bool strong,
                                Mask lanes) {
  note_write(single(index), byte_mask, warp, op, clocks_.now(warp), strong, lanes);
}

// --- asynchronous accesses -------------------------------------------------------------------------------------------------

void SharedMemory::part(uint32_t word) {
  Unit& unit = units_[word / unit_words];
  unit.word.for_unit = false;
  const uint32_t first = word / unit_words * unit_words;
  std::fill_n(&words_[first], unit_words, unit.word);
  std::fill_n(&async(first), unit_words, unit.async);
}

SharedMemory::Unit* SharedMemory::joined_unit(uint32_t first) {
  Word* const word = &words_[first];
  const Async* const async = &this->async(first);
  for (uint32_t i = 1; i < unit_words; ++i)
    if (word[i] != word[0] || async[i] != async[0]) return nullptr;
  if (units_.empty()) units_.resize(words_.size() / unit_words);
  Unit& unit = units_[first / unit_words];
  unit = {word[0], async[0]};
  unit.word.for_unit = true;
  for (uint32_t i = 0; i < unit_words; ++i) word[i].under_way = joined;
  return &unit;
}

SharedMemory::Verdict SharedMemory::begin_async_read(uint32_t index, uint32_t warp, uint32_t op, unsigned byte_mask,
                                                     bool anyway) {
  Word& word = single(index);
  Async& async = this->async(index);
  if (!anyway) {
    if (word.under_way == writing) return {Found::write_under_way, async.warp, async.op};
    const Verdict verdict = check_read(word, byte_mask, warp, false);
    if (verdict.found != Found::nothing) return verdict;
  }
  word.under_way = reading;
  async.op = op;
  async.warp = static_cast<uint16_t>(warp);
  ++async.reads;
  return {};
}

SharedMemory::Verdict SharedMemory::begin_async_write(uint32_t index, uint32_t warp, uint32_t op, bool anyway) {
  Word& word = single(index);
  Async& async = this->async(index);
  if (!anyway) {
    if (word.under_way)
      return {word.under_way == writing ? Found::write_under_way : Found::read_under_way, async.warp, async.op};
    const Verdict verdict = check_write(word, 0xf, warp, false);
    if (verdict.found != Found::nothing) return verdict;
  }
  word.under_way = writing;
  async.op = op;
  async.warp = static_cast<uint16_t>(warp);
  return {};
}

void SharedMemory::end_async_read(uint32_t index, uint32_t warp, uint32_t op, uint32_t time, unsigned byte_mask) {
  Word& word = single(index);
  if (--async_[index].reads == 0) word.under_way = 0;
  note_read(word, byte_mask, warp, op, time, false, 0);
}

void SharedMemory::end_async_write(uint32_t index, uint32_t warp, uint32_t op, uint32_t time) {
  Word& word = single(index);
  word.under_way = 0;
  note_write(word, 0xf, warp, op, time, false, 0);
}

inline bool SharedMemory::begin_read(Word& word, Async& async, uint32_t warp, uint32_t op, Passed& passed,
                                     Verdict& verdict) const {
  if (word.under_way == writing) {
    verdict = {Found::write_under_way, async.warp, async.op};
    return false;
  }
  if (word.written != 0xf || word.write.warp != passed.warp || word.write.time != passed.time) {
    verdict = check_read(word, 0xf, warp, false);
    if (verdict.found == Found::nothing && !clocks_.fenced(warp, word.write.warp, word.write.time))
      verdict.found = Found::unfenced;
    if (verdict.found != Found::nothing) return false;
    passed = {word.write.time, word.write.warp};
  }
  word.under_way = reading;
  async = {op, static_cast<uint16_t>(async.reads + 1), static_cast<uint16_t>(warp)};
  return true;
}

inline bool SharedMemory::begin_write(Word& word, Async& async, uint32_t warp, uint32_t op, Verdict& verdict) const {
  if (word.under_way)
    verdict = {word.under_way == writing ? Found::write_under_way : Found::read_under_way, async.warp, async.op};
  else
    verdict = check_write(word, 0xf, warp, false);
  if (verdict.found != Found::nothing) return false;
  word.under_way = writing;
  async.op = op;
  async.warp = static_cast<uint16_t>(warp);
  return true;
}

inline void SharedMemory::end_read(Word& word, Async& async, uint32_t warp, uint32_t op, uint32_t time) {
  if (--async.reads == 0) word.under_way = 0;
  note_read(word, 0xf, warp, op, time, false, 0);
}

inline void SharedMemory::end_write(Word& word, uint32_t warp, uint32_t op, uint32_t time, bool strong) {
  word.under_way = 0;
  note_write(word, 0xf, warp, op, time, strong, 0);
}

void SharedMemory::end_async_writes(uint32_t first, int words, uint32_t warp, uint32_t op, uint32_t time, bool strong) {
  for (uint32_t i = first; i < first + uint32_t(words); ++i) end_write(single(i), warp, op, time, strong);
}

void SharedMemory::begin_async_reads(Units units, uint32_t warp, uint32_t op, const Report& report) {
  Passed passed;
  Verdict of_unit;  // where something is found, its words will find it, too
  for (const uint32_t address : units) {
    const uint32_t first = address / 4;
    if (Unit* const unit = unit_at(first, true); unit && begin_read(unit->word, unit->async, warp, op, passed, of_unit))
      continue;
    for (uint32_t i = first; i < first + unit_words; ++i) {
      Word& word = single(i);
      Verdict verdict;
      if (begin_read(word, async(i), warp, op, passed, verdict)) continue;
      report(i, verdict);
      begin_async_read(i, warp, op, 0xf, true);
    }
  }
}

void SharedMemory::begin_async_writes(Units units, uint32_t warp, uint32_t op, const Report& report) {
  Verdict of_unit;  // where something is found, its words will find it, too
  for (const uint32_t address : units) {
    const uint32_t first = address / 4;
    if (Unit* const unit = unit_at(first, true); unit && begin_write(unit->word, unit->async, warp, op, of_unit))
      continue;
    for (uint32_t i = first; i < first + unit_words; ++i) {
      Word& word = single(i);
      Verdict verdict;
      if (begin_write(word, async(i), warp, op, verdict)) continue;
      report(i, verdict);
      begin_async_write(i, warp, op, true);
    }
  }
}

void SharedMemory::end_async_reads(Units units, uint32_t warp, uint32_t op, uint32_t time) {
  for (const uint32_t address : units) {
    const uint32_t first = address / 4;
    if (Unit* const unit = unit_at(first, false))
      end_read(unit->word, unit->async, warp, op, time);
    else
      for (uint32_t i = first; i < first + unit_words; ++i) end_read(words_[i], async_[i], warp, op, time);
  }
}

void SharedMemory::end_async_writes(Units units, uint32_t warp, uint32_t op, uint32_t time) {
  for (const uint32_t address : units)
    if (Unit* const unit = unit_at(address / 4, false))
      end_write(unit->word, warp, op, time, false);
    else
      end_async_writes(address / 4, unit_words, warp, op, time);
}

SharedCost shared_cost(const std::array<int64_t, warp_size>& byte, int bytes, Mask mask) {
  constexpr int banks = 32;
  const int width = std::max(1, bytes / 4);  // words per lane
  const auto in_pairs = [&](int other) {
    for (int l = 0; l < warp_size; ++l)
      if ((mask >> l & 1) && (mask >> (l ^ other) & 1) && byte[l] != byte[l ^ other]) return false;
    return true;
  };
  const int group = width == 1 ? warp_size : warp_size / width * (in_pairs(1) || in_pairs(2) ? 2 : 1);
  SharedCost cost;
  for (int first = 0; first < warp_size; first += group) {
    int64_t seen[banks][warp_size];
    int different[banks] = {}, busiest = 0;
    for (int l = first; l < first + group; ++l) {
      if (!(mask >> l & 1)) continue;
      for (int64_t word = byte[l] >> 2; word < (byte[l] >> 2) + width; ++word) {
        const int bank = static_cast<int>(word & (banks - 1));
        int i = 0;
        while (i < different[bank] && seen[bank][i] != word) ++i;
        if (i == different[bank]) seen[bank][different[bank]++] = word;
        busiest = std::max(busiest, different[bank]);
      }
    }
    cost.wavefronts += busiest;
    cost.ideal += busiest > 0;
  }
  return cost;
}

}  // namespace sim
