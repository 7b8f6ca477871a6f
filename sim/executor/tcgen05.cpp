#include "executor/tcgen05.h"

#include "text.h"

namespace sim {
namespace {

OperandFormat format_of(uint32_t code, MmaKind kind) {
  using enum OperandFormat;
  constexpr OperandFormat of_f16[] = {f16, bf16, none, none, none, none, none, none};
  constexpr OperandFormat of_tf32[] = {none, none, tf32, none, none, none, none, none};
  constexpr OperandFormat of_f8f6f4[] = {e4m3, e5m2, none, e2m3, e3m2, e2m1, none, none};
  return kind == MmaKind::f16 ? of_f16[code] : kind == MmaKind::tf32 ? of_tf32[code] : of_f8f6f4[code];
}

constexpr uint32_t field(uint64_t bits, int first, int count) {
  return uint32_t(bits >> first & ((uint64_t{1} << count) - 1));
}

}  // namespace

const char* name(OperandFormat format) {
  constexpr const char* names[] = {"F16", "BF16", "TF32", "E4M3", "E5M2", "E2M3", "E3M2", "E2M1", "none"};
  return names[size_t(format)];
}

InstructionDescriptor::InstructionDescriptor(uint32_t bits, MmaKind kind)
    : bits(bits),
      m(field(bits, 24, 5) << 4),
      n(field(bits, 17, 6) << 3),
      k(kind == MmaKind::f16    ? 16
        : kind == MmaKind::tf32 ? 8
                                : 32),
      a(format_of(field(bits, 7, 3), kind)),
      b(format_of(field(bits, 10, 3), kind)),
      f16_result(kind != MmaKind::mxf8f6f4 && field(bits, 4, 2) == 0),
      negate_a(field(bits, 13, 1)),
      negate_b(field(bits, 14, 1)),
      transpose_a(field(bits, 15, 1)),
      transpose_b(field(bits, 16, 1)),
      a_scale_byte(field(bits, 29, 2)),
      b_scale_byte(field(bits, 4, 2)) {}

/// PTX ISA 9.7.16, "Matrix Shape", has the shapes.
std::string InstructionDescriptor::check(MmaKind kind, uint32_t cta_group) const {
  const bool scaled = kind == MmaKind::mxf8f6f4;
  const uint32_t d = scaled ? 1 : field(bits, 4, 2);
  if (field(bits, 2, 1)) return "sparse A is not supported";
  if (field(bits, 3, 1) || field(bits, 6, 1) ||
      (scaled ? field(bits, 31, 1) : field(bits, 23, 1) || field(bits, 29, 1)))
    return "a reserved bit is set, or the one that saturates integers";
  if (scaled && !field(bits, 23, 1)) return "scale factors of mxf8f6f4 are UE8M0 (bit 23)";
  if (scaled && m != 128 * cta_group)
    return formatted("M is {}: with scale factors only {} is supported", m, 128 * cta_group);
  if (a == OperandFormat::none || b == OperandFormat::none)
    return formatted("the type {} of {} is none of this kind", field(bits, a == OperandFormat::none ? 7 : 10, 3),
                     a == OperandFormat::none ? "A" : "B");
  if (kind == MmaKind::f16 && a != b) return formatted("A is {} and B is {}", name(a), name(b));
  if (d > 1 || (d == 0 && (kind == MmaKind::tf32 || a == OperandFormat::bf16)))
    return formatted("the type {} of D does not go with {}", d, name(a));
  if (kind == MmaKind::tf32 && (transpose_a || transpose_b))
    return "TF32 with M or N contiguous is not supported (it needs 128-byte swizzling of 32-byte atoms)";
  const uint32_t rows = m / cta_group, step = rows == 64 && cta_group == 1 ? 8 : 16;
  if ((rows != 64 && rows != 128) || n < step || n > 256 || n % step)
    return formatted("there is no shape M {}, N {} with cta_group::{}", m, n, cta_group);
  return "";
}

SharedDescriptor::SharedDescriptor(uint64_t bits) : layout(bits), bits_(bits) {
  constexpr uint32_t spans[] = {0, 0, 128, 0, 64, 0, 32, 0};
  layout.swizzle = spans[field(bits, 61, 3)];
}

std::string SharedDescriptor::check() const {
  const uint32_t mode = field(bits_, 61, 3);
  if (field(bits_, 46, 3) != 1)
    return formatted("bits 46 to 48 are {:#b}, but those of sm_100 are 0b001 (a descriptor of wgmma has 0)",
                     field(bits_, 46, 3));
  if (field(bits_, 53, 8)) return "bits 53 to 60 are not 0";
  if (mode == 1) return "128-byte swizzling of 32-byte atoms is not supported";
  if (mode % 2) return formatted("there is no swizzling mode {}", mode);
  if (layout.base_offset) return "a base offset is not supported";
  if (field(bits_, 52, 1)) return "a leading dimension with an absolute address is not supported";
  return "";
}

}  // namespace sim
