// Loads, stores and atomics of a warp: what the checker lets pass is moved.
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "executor/atomics.h"
#include "executor/interpreter.h"
#include "text.h"

namespace sim {

/// A load that the checker lets pass in the pattern of the last one.
bool Interpreter::load_as_before(Warp& warp, const Op& op, uint32_t pc) {
  const MemoryChecker::LastLoad* const load = checker_.load_in_last_pattern(warp, op, pc);
  if (!load) return false;
  if (load->word_register == discarded) {
    move_data_as_before(warp, op, load->pattern->form);
    return true;
  }
  const auto* const from =
      reinterpret_cast<const std::byte*>(*at<uint64_t>(warp.registers, op.o.a) + uint64_t(op.displacement));
  uint32_t* const d = at<uint32_t>(warp.registers, load->word_register);
  if (load->pattern->form == Pattern::Form::uniform) {
    uint32_t word;
    std::memcpy(&word, from, sizeof word);
    for (int l = 0; l < warp_size; ++l) d[l] = word;
  } else {
    std::memcpy(d, from, warp_size * sizeof *d);
  }
  return true;
}

/// Apart, so that the loads of one word need no stack.
[[gnu::noinline]] void Interpreter::move_data_as_before(Warp& warp, const Op& op, Pattern::Form form) {
  const uint64_t* const base = at<uint64_t>(warp.registers, op.o.a);
  alignas(32) std::array<std::byte*, warp_size> addresses;
  for (int l = 0; l < warp_size; ++l) addresses[l] = reinterpret_cast<std::byte*>(base[l] + uint64_t(op.displacement));
  move_data(warp, op, all_lanes, addresses, form);
}

void Interpreter::memory_operation(Warp& warp, const Op& op, uint32_t pc, Mask mask) {
  alignas(32) Addresses address = addresses(warp, op);
  if (op.space != Space::generic) return access_or_skip(warp, op, pc, mask, op.space, address, false);
  // A generic address says by itself where it points (PTX ISA 5.1, "Generic Addressing").
  Mask shared = 0, local = 0;
  for (int l = 0; l < warp_size; ++l) {
    if (in_shared_window(address[l])) shared |= mask & Mask{1} << l;
    if (in_local_window(address[l])) local |= mask & Mask{1} << l;
  }
  for (int l = 0; l < warp_size; ++l) address[l] -= shared >> l & 1 ? shared_window : local >> l & 1 ? local_window : 0;
  if (shared) access_or_skip(warp, op, pc, shared, Space::shared, address, true);
  if (local) access_or_skip(warp, op, pc, local, Space::local, address, true);
  if (const Mask rest = mask & ~shared & ~local) access_or_skip(warp, op, pc, rest, Space::global, address, true);
}

/// Where the kernel goes on after an access out of bounds or misaligned, the lanes concerned make none; they load 0.
void Interpreter::access_or_skip(Warp& warp, const Op& op, uint32_t pc, Mask mask, Space space, Addresses& address,
                                 bool generic) {
  while (mask) {
    try {
      return access(warp, op, pc, mask, space, address, generic);
    } catch (const MemoryChecker::Skip& skip) {
      mask &= ~skip.lanes;
      if (op.kind == Kind::store) continue;
      for (const Element& e : op.elements)
        if (e.offset != discarded)
          std::memset(warp.registers + e.offset + size_t(first(skip.lanes)) * e.bytes, 0, e.bytes);
    }
  }
}

/// `address`: in the state space `space`; of shared memory, changed to offsets in it. `generic`: they were generic ones.
void Interpreter::access(Warp& warp, const Op& op, uint32_t pc, Mask mask, Space space, Addresses& address,
                         bool generic) {
  const uint32_t bytes = op.bytes * uint32_t(op.elements.size());
  std::array<std::byte*, warp_size> at;  // of the lanes of `mask`
  const bool of_cluster = space == Space::shared && (generic || op.cluster);
  Pattern* pattern = &checker_.pattern(pc, 0, space, mask, address, bytes);
  checker_.check_aligned(warp, op, address, bytes, *pattern);
  switch (space) {
    case Space::shared:
      if (!of_cluster) {
        checker_.check_shared(warp, op, pc, mask, *warp.block, address, bytes, *pattern);
        for (int l = 0; l < warp_size; ++l) at[l] = warp.block->shared.data() + address[l];
        break;
      }
      for (Mask rest = mask; rest;) {  // block by block
        Mask here = rest;
        const uint64_t rank = address[first(rest)] >> cluster_rank_shift;
        Block& owner = checker_.owner_of(warp, first(rest), op, address[first(rest)]);
        for (int l = 0; l < warp_size; ++l) {
          if (!(rest >> l & 1)) continue;
          if (address[l] >> cluster_rank_shift != rank)
            here &= ~(Mask{1} << l);
          else
            address[l] = shared_offset(address[l]);
        }
        pattern = &checker_.pattern(pc, 0, space, here, address, bytes);
        checker_.check_shared(warp, op, pc, here, owner, address, bytes, *pattern);
        for (int l = 0; l < warp_size; ++l)
          if (here >> l & 1) at[l] = owner.shared.data() + address[l];
        rest &= ~here;
      }
      break;
    case Space::local:
      for (int l = 0; l < warp_size; ++l) {
        if (!(mask >> l & 1)) continue;
        if (address[l] + bytes > program_.frame_bytes || address[l] + bytes < address[l])
          checker_.reject(warp, l, op, Check::bounds, [&] {
            return formatted("address {:#x} is outside of the thread's {} bytes of local memory", address[l],
                             program_.frame_bytes);
          });
        at[l] = warp.frames + size_t(l) * program_.frame_bytes + address[l];
      }
      break;
    case Space::param:  // of the kernel
      for (int l = 0; l < warp_size; ++l) {
        const uint64_t begin = reinterpret_cast<uint64_t>(unit_.param());
        if ((mask >> l & 1) && (address[l] < begin || address[l] + bytes > begin + launch_.params.size()))
          reports_.report(warp, l, op, "an address outside of the kernel's parameters", Fault::illegal_address);
        at[l] = reinterpret_cast<std::byte*>(address[l]);
      }
      break;
    default:
      checker_.check_global(warp, op, pc, mask, address, bytes, *pattern);
      if (op.kind == Kind::load && op.space == Space::global) checker_.keep_for_next_load(op, pc, bytes, *pattern);
      for (int l = 0; l < warp_size; ++l) at[l] = reinterpret_cast<std::byte*>(address[l]);
  }
  if (op.kind == Kind::atomic)
    atomic(warp, op, mask, at);
  else if (space == Space::shared && op.kind == Kind::store &&
           uint32_t(pattern->words) * 4 < uint32_t(std::popcount(mask)) * bytes)
    store_in_any_order(warp, op, mask, at);
  else
    move_data(warp, op, mask, at,
              pattern->mask == mask && space != Space::local ? pattern->form : Pattern::Form::general);
}

/// Lanes that write to one place at once: which of them wins is not specified (CUDA C++ Programming Guide, "SIMT
/// Architecture"), so it is another with every seed.
void Interpreter::store_in_any_order(Warp& warp, const Op& op, Mask mask, const std::array<std::byte*, warp_size>& at) {
  const int last = static_cast<int>(unit_.random() % warp_size);
  move_data(warp, op, mask, at);
  if (mask >> last & 1) move_data(warp, op, Mask{1} << last, at);  // once more, after the others
}

namespace {

/// Two matrices of 4 x 4 words, one in each half of the vectors.
void transpose(__m256 (&row)[4]) {
  const __m256 a = _mm256_unpacklo_ps(row[0], row[1]), b = _mm256_unpackhi_ps(row[0], row[1]);
  const __m256 c = _mm256_unpacklo_ps(row[2], row[3]), d = _mm256_unpackhi_ps(row[2], row[3]);
  row[0] = _mm256_shuffle_ps(a, c, _MM_SHUFFLE(1, 0, 1, 0));
  row[1] = _mm256_shuffle_ps(a, c, _MM_SHUFFLE(3, 2, 3, 2));
  row[2] = _mm256_shuffle_ps(b, d, _MM_SHUFFLE(1, 0, 1, 0));
  row[3] = _mm256_shuffle_ps(b, d, _MM_SHUFFLE(3, 2, 3, 2));
}

/// One element of a load. A wider register is filled with zeros, or with the sign (PTX ISA 9.7.9.8, ld).
template <class Element, class Register>
void load_lanes(std::byte* registers, const std::array<std::byte*, warp_size>& at, size_t offset, Mask mask,
                Pattern::Form form) {
  alignas(32) Element values[warp_size];
  Register* const d = reinterpret_cast<Register*>(registers);
  if (form == Pattern::Form::uniform) {
    std::memcpy(values, at[0] + offset, sizeof(Element));
    for (int l = 0; l < warp_size; ++l) d[l] = Register(values[0]);
  } else if (form == Pattern::Form::consecutive) {
    std::memcpy(values, at[0], sizeof values);
    for (int l = 0; l < warp_size; ++l) d[l] = Register(values[l]);
  } else if (mask == all_lanes) {
    for (int l = 0; l < warp_size; ++l) {
      std::memcpy(values, at[l] + offset, sizeof(Element));
      d[l] = Register(values[0]);
    }
  } else {
    for (Mask rest = mask; rest; rest &= rest - 1) {
      const int l = first(rest);
      std::memcpy(values, at[l] + offset, sizeof(Element));
      d[l] = Register(values[0]);
    }
  }
}

template <class Element, class Register>
void store_lanes(const std::byte* registers, const std::array<std::byte*, warp_size>& at, size_t offset, Mask mask,
                 Pattern::Form form) {
  const Register* const d = reinterpret_cast<const Register*>(registers);
  if (form == Pattern::Form::consecutive) {
    alignas(32) Element values[warp_size];
    for (int l = 0; l < warp_size; ++l) values[l] = Element(d[l]);
    std::memcpy(at[0], values, sizeof values);
    return;
  }
  for (Mask rest = mask; rest; rest &= rest - 1) {
    const int l = first(rest);
    const auto value = Element(d[l]);
    std::memcpy(at[l] + offset, &value, sizeof value);
  }
}

template <class Element, class Register>
void move_lanes(bool load, std::byte* registers, const std::array<std::byte*, warp_size>& at, size_t offset, Mask mask,
                Pattern::Form form) {
  if (load)
    load_lanes<Element, Register>(registers, at, offset, mask, form);
  else
    store_lanes<Element, Register>(registers, at, offset, mask, form);
}

/// By the widths of the element and of the register.
template <class Element>
auto move_lanes_of(uint8_t register_bytes) {
  return register_bytes == 2   ? move_lanes<Element, uint16_t>
         : register_bytes == 4 ? move_lanes<Element, uint32_t>
                               : move_lanes<Element, uint64_t>;
}

/// Four words per lane, of all lanes: four registers, of which each pass fills 8 lanes.
void load_quads(std::byte* const (&registers)[4], const std::array<std::byte*, warp_size>& at) {
  for (int l = 0; l < warp_size; l += 8) {
    __m256 row[4];  // the words of lane l + i, and of lane l + 4 + i
    for (int i = 0; i < 4; ++i)
      row[i] = _mm256_set_m128(_mm_loadu_ps(reinterpret_cast<const float*>(at[l + 4 + i])),
                               _mm_loadu_ps(reinterpret_cast<const float*>(at[l + i])));
    transpose(row);
    for (int i = 0; i < 4; ++i) _mm256_store_ps(reinterpret_cast<float*>(registers[i]) + l, row[i]);
  }
}
void store_quads(std::byte* const (&registers)[4], const std::array<std::byte*, warp_size>& at) {
  for (int l = 0; l < warp_size; l += 8) {
    __m256 row[4];
    for (int i = 0; i < 4; ++i) row[i] = _mm256_load_ps(reinterpret_cast<const float*>(registers[i]) + l);
    transpose(row);
    for (int i = 0; i < 4; ++i) _mm_storeu_ps(reinterpret_cast<float*>(at[l + i]), _mm256_castps256_ps128(row[i]));
    for (int i = 0; i < 4; ++i)
      _mm_storeu_ps(reinterpret_cast<float*>(at[l + 4 + i]), _mm256_extractf128_ps(row[i], 1));
  }
}

}  // namespace

void Interpreter::move_data(Warp& warp, const Op& op, Mask mask, const std::array<std::byte*, warp_size>& at,
                            Pattern::Form form) {
  const bool load = op.kind == Kind::load;
  if (op.elements.size() == 4 && op.bytes == 4 && mask == all_lanes) {
    std::byte* registers[4];
    bool words = true;
    for (int i = 0; i < 4; ++i) {
      words = words && op.elements[i].offset != discarded && op.elements[i].bytes == 4;
      registers[i] = warp.registers + op.elements[i].offset;
    }
    if (words) return load ? load_quads(registers, at) : store_quads(registers, at);
  }
  if (op.elements.size() > 1 && form == Pattern::Form::consecutive) form = Pattern::Form::general;
  size_t offset = 0;
  for (const Element& e : op.elements) {
    if (op.bytes == 16) {
      for (Mask rest = mask; rest; rest &= rest - 1) {
        std::byte* const value = warp.registers + e.offset + size_t(first(rest)) * 16;
        std::byte* const place = at[first(rest)] + offset;
        load ? std::memcpy(value, place, 16) : std::memcpy(place, value, 16);
      }
    } else if (e.offset != discarded) {
      const auto move =
          op.bytes == 4   ? op.is_signed ? move_lanes_of<int32_t>(e.bytes) : move_lanes_of<uint32_t>(e.bytes)
            : op.bytes == 8 ? move_lanes_of<uint64_t>(e.bytes)
          : op.bytes == 2 ? op.is_signed ? move_lanes_of<int16_t>(e.bytes) : move_lanes_of<uint16_t>(e.bytes)
          : op.is_signed ? move_lanes_of<int8_t>(e.bytes)
                          : move_lanes_of<uint8_t>(e.bytes);
      move(load, warp.registers + e.offset, at, offset, mask, form);
    }
    offset += op.bytes;
  }
}

void Interpreter::atomic(Warp& warp, const Op& op, Mask mask, const std::array<std::byte*, warp_size>& at) {
  for (int l = 0; l < warp_size; ++l) {  // blocks on other CPU threads do the same to global memory
    if (!(mask >> l & 1)) continue;
    const auto update = [&](const Element& d, std::byte* place, const std::byte* b, const std::byte* c) {
      const uint64_t old = update_atomically(op, place, b, c);
      if (d.offset != discarded) std::memcpy(warp.registers + d.offset + size_t(l) * d.bytes, &old, d.bytes);
    };
    for (size_t i = 0; i < op.values.size(); ++i) {
      const Element& b = op.values[i];
      update(op.elements[i], at[l] + i * op.bytes, warp.registers + b.offset + size_t(l) * b.bytes, nullptr);
    }
    if (op.values.empty())
      update(op.elements[0], at[l], warp.registers + op.o.b + size_t(l) * op.bytes,
             warp.registers + op.o.c + size_t(l) * op.bytes);
  }
}

}  // namespace sim
