#include "sim/executor/shared_memory.h"

#include <algorithm>

namespace sim {

void SharedMemory::reset() {
  std::fill(words_.begin(), words_.end(), Word{});
  std::fill(async_.begin(), async_.end(), Async{});
}

SharedMemory::Verdict SharedMemory::check_read(const Word& word, unsigned byte_mask, uint32_t warp, bool strong) const {
  if (byte_mask & ~word.written) return {Found::uninitialised, 0, 0};
  if (word.writer != warp && (byte_mask & word.write_bytes) && !(strong && word.strong_write) &&
      !clocks_.knows(warp, word.writer, word.write_time))
    return {Found::race_with_write, word.writer, word.write_op};
  return {};
}

SharedMemory::Verdict SharedMemory::check_write(const Word& word, unsigned byte_mask, uint32_t warp,
                                                bool strong) const {
  if (word.writer != warp && word.writer != nobody && !(strong && word.strong_write) &&
      (byte_mask & word.write_bytes) && !clocks_.knows(warp, word.writer, word.write_time))
    return {Found::race_with_write, word.writer, word.write_op};
  for (int i = 0; i < 2; ++i)
    if (word.reader[i] != warp && word.reader[i] != nobody && !(strong && word.strong_read[i]) &&
        (byte_mask & word.read_bytes[i]) && !clocks_.knows(warp, word.reader[i], word.read_time[i]))
      return {Found::race_with_read, word.reader[i], word.read_op[i]};
  return {};
}

void SharedMemory::note_read(Word& word, unsigned byte_mask, uint32_t warp, uint32_t op, uint32_t time, bool strong) {
  if (word.reader[0] != warp) {
    word.reader[1] = word.reader[0];
    word.read_time[1] = word.read_time[0];
    word.read_op[1] = word.read_op[0];
    word.strong_read[1] = word.strong_read[0];
    word.read_bytes[1] = word.read_bytes[0];
    word.reader[0] = static_cast<uint16_t>(warp);
  }
  word.read_time[0] = time;
  word.read_op[0] = op;
  word.strong_read[0] = strong;
  word.read_bytes[0] = static_cast<uint8_t>(byte_mask);
}

void SharedMemory::note_write(Word& word, unsigned byte_mask, uint32_t warp, uint32_t op, uint32_t time, bool strong) {
  word.writer = static_cast<uint16_t>(warp);
  word.write_time = time;
  word.write_op = op;
  word.strong_write = strong;
  word.write_bytes = static_cast<uint8_t>(byte_mask);
  word.written |= byte_mask;
}

SharedMemory::Verdict SharedMemory::read(uint32_t index, unsigned byte_mask, uint32_t warp, uint32_t op, bool strong) {
  Word& word = words_[index];
  if (word.under_way == writing) return {Found::write_under_way, async_[index].warp, async_[index].op};
  const Verdict verdict = check_read(word, byte_mask, warp, strong);
  if (verdict.found == Found::nothing) note_read(word, byte_mask, warp, op, clocks_.now(warp), strong);
  return verdict;
}

SharedMemory::Verdict SharedMemory::write(uint32_t index, unsigned byte_mask, uint32_t warp, uint32_t op, bool strong) {
  Word& word = words_[index];
  if (word.under_way) [[unlikely]]
    return {word.under_way == writing ? Found::write_under_way : Found::read_under_way, async_[index].warp,
            async_[index].op};
  const Verdict verdict = check_write(word, byte_mask, warp, strong);
  if (verdict.found == Found::nothing) note_write(word, byte_mask, warp, op, clocks_.now(warp), strong);
  return verdict;
}

// --- asynchronous accesses -------------------------------------------------------------------------------------------------

SharedMemory::Verdict SharedMemory::begin_async_read(uint32_t index, uint32_t warp, uint32_t op, unsigned byte_mask) {
  Word& word = words_[index];
  Async& async = this->async(index);
  if (word.under_way == writing) return {Found::write_under_way, async.warp, async.op};
  if (const Verdict verdict = check_read(word, byte_mask, warp, false); verdict.found != Found::nothing) return verdict;
  word.under_way = reading;
  async.op = op;
  async.warp = static_cast<uint16_t>(warp);
  ++async.reads;
  return {};
}

SharedMemory::Verdict SharedMemory::begin_async_write(uint32_t index, uint32_t warp, uint32_t op) {
  Word& word = words_[index];
  Async& async = this->async(index);
  if (word.under_way)
    return {word.under_way == writing ? Found::write_under_way : Found::read_under_way, async.warp, async.op};
  if (const Verdict verdict = check_write(word, 0xf, warp, false); verdict.found != Found::nothing) return verdict;
  word.under_way = writing;
  async.op = op;
  async.warp = static_cast<uint16_t>(warp);
  return {};
}

void SharedMemory::end_async_read(uint32_t index, uint32_t warp, uint32_t op, uint32_t time, unsigned byte_mask) {
  Word& word = words_[index];
  if (--async_[index].reads == 0) word.under_way = 0;
  note_read(word, byte_mask, warp, op, time, false);
}

void SharedMemory::end_async_write(uint32_t index, uint32_t warp, uint32_t op, uint32_t time) {
  Word& word = words_[index];
  word.under_way = 0;
  note_write(word, 0xf, warp, op, time, false);
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
