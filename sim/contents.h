// Which bytes of an allocation hold a value, and whether the running launch has written them.
//
// One byte stands for each byte of the allocation. CPU threads write these marks at the same time, each for what its own
// blocks store; two that mark one byte write the same mark.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace sim {

class Contents {
 public:
  /// Marks: nobody has written the byte, somebody has; greater ones, of the launch that has.
  static constexpr uint8_t unwritten = 0, written = 1, first_launch = 2;

  /// calloc: marks of bytes that no kernel stores to take no memory.
  explicit Contents(size_t bytes) : bytes_(bytes), marks_(static_cast<uint8_t*>(std::calloc(bytes + 1, 1))) {
    if (!marks_) throw std::bad_alloc();
  }

  /// By the host, between launches.
  void host_wrote(size_t first, size_t bytes) {
    if (bytes == bytes_)
      complete_ = true;
    else if (!complete_)
      std::memset(marks_.get() + first, written, bytes);
  }
  void kernel_wrote(size_t first, size_t bytes, uint8_t launch) {
    std::memset(marks_.get() + first, launch, bytes);
    if (stored_by_.load(std::memory_order_relaxed) != launch) stored_by_.store(launch, std::memory_order_relaxed);
  }
  /// Between launches: kernels may have written the last bytes that were missing. Each byte is looked at once; the look
  /// goes on where it ended at a gap.
  void look_for_gaps() {
    if (complete_) return;
    without_gap_ += find(without_gap_, bytes_ - without_gap_, unwritten);
    complete_ = without_gap_ == bytes_;
  }
  /// Whether all these bytes hold values; and, of a read-only access, whether the launch has left them alone.
  bool may_be_read(size_t first, size_t bytes, bool read_only, uint8_t launch) const {
    return find_unwritten(first, bytes) == bytes && (!read_only || find_written_by(launch, first, bytes) == bytes);
  }
  /// A byte of these that nobody has written, or `bytes`.
  size_t find_unwritten(size_t first, size_t bytes) const { return complete_ ? bytes : find(first, bytes, unwritten); }
  /// A byte of these that this launch has written, or `bytes`.
  size_t find_written_by(uint8_t launch, size_t first, size_t bytes) const {
    return has_stores_of(launch) ? find(first, bytes, launch) : bytes;
  }
  bool complete() const { return complete_; }
  bool has_stores_of(uint8_t launch) const { return stored_by_.load(std::memory_order_relaxed) == launch; }

  /// The marks of launches are used again: those of earlier ones become `written`.
  void forget_launches() {
    if (stored_by_.exchange(0))
      for (size_t i = 0; i < bytes_; ++i) marks_[i] = marks_[i] ? written : unwritten;
  }

 private:
  size_t find(size_t first, size_t bytes, uint8_t mark) const {
    const uint8_t* const marks = marks_.get() + first;
    if ((bytes == 4 && !has<uint32_t>(marks, mark)) || (bytes == 8 && !has<uint64_t>(marks, mark)) ||
        (bytes == 16 && !has<uint64_t>(marks, mark) && !has<uint64_t>(marks + 8, mark)))
      return bytes;
    const void* const at = std::memchr(marks, mark, bytes);
    return at ? static_cast<size_t>(static_cast<const uint8_t*>(at) - marks) : bytes;
  }
  /// Whether one of a word's bytes is `mark`: the subtraction borrows from the top bit of a byte that is 0.
  template <class Word>
  static bool has(const uint8_t* marks, uint8_t mark) {
    constexpr Word ones = Word(-1) / 0xff;  // 1 in each byte
    Word word;
    std::memcpy(&word, marks, sizeof word);
    word ^= ones * mark;
    return (word - ones) & ~word & (ones << 7);
  }

  struct Free {
    void operator()(uint8_t* marks) const { std::free(marks); }
  };
  size_t bytes_;
  std::unique_ptr<uint8_t[], Free> marks_;
  bool complete_ = false;               ///< all bytes hold values; no mark need say so
  size_t without_gap_ = 0;              ///< so many of the first bytes do
  std::atomic<uint8_t> stored_by_ = 0;  ///< the last launch that stored here
};

}  // namespace sim
