#include "executor/tcgen05.h"

#include <utility>

#include "text.h"

namespace sim {
namespace {

OperandFormat format_of(uint32_t code, MmaKind kind) {
  using enum OperandFormat;
  constexpr OperandFormat of_f16[] = {f16, bf16, none, none, none, none, none, none};
  constexpr OperandFormat of_tf32[] = {none, none, tf32, none, none, none, none, none};
  constexpr OperandFormat of_f8f6f4[] = {e4m3, e5m2, none, e2m3, e3m2, e2m1, none, none};
  constexpr OperandFormat of_i8[] = {u8, s8, none, none, none, none, none, none};
  constexpr OperandFormat of_fp4[] = {none, packed_e2m1, none, none, none, none, none, none};
  switch (kind) {
    case MmaKind::f16:
      return of_f16[code];
    case MmaKind::tf32:
      return of_tf32[code];
    case MmaKind::i8:
      return of_i8[code];
    case MmaKind::mxf4:
    case MmaKind::mxf4nvf4:
      return of_fp4[code];
    default:
      return of_f8f6f4[code];
  }
}

constexpr uint32_t field(uint64_t bits, int first, int count) {
  return uint32_t(bits >> first & ((uint64_t{1} << count) - 1));
}

}  // namespace

const char* name(OperandFormat format) {
  constexpr const char* names[] = {"F16", "BF16", "TF32", "E4M3", "E5M2", "U8",
                                   "S8",  "E2M1", "E2M3", "E3M2", "E2M1", "none"};
  return names[size_t(format)];
}

InstructionDescriptor::InstructionDescriptor(uint32_t bits, MmaKind kind)
    : bits(bits),
      m(field(bits, 24, 5) << 4),
      n(field(bits, 17, 6) << 3),
      k(kind == MmaKind::f16    ? 16
        : kind == MmaKind::tf32 ? 8
        : has_packed_fp4(kind)  ? 64
                                : 32),
      a(format_of(field(bits, 7, 3), kind)),
      b(format_of(field(bits, 10, has_packed_fp4(kind) ? 2 : 3), kind)),
      f16_result(!has_scale_factors(kind) && field(bits, 4, 2) == 0),
      negate_a(field(bits, 13, 1)),
      negate_b(field(bits, 14, 1)),
      transpose_a(field(bits, 15, 1)),
      transpose_b(field(bits, 16, 1)),
      saturate(field(bits, 3, 1)),
      ue4m3(kind == MmaKind::mxf4nvf4 && !field(bits, 23, 1)),
      a_scale_byte(field(bits, 29, 2)),
      b_scale_byte(field(bits, 4, 2)) {}

/// PTX ISA 9.7.16.2.1, "Matrix Shape", has the shapes; 9.7.16.10.1, "Transpose and Negate operations", what goes with what.
std::string InstructionDescriptor::check(const MmaOptions& options, uint32_t cta_group) const {
  const MmaKind kind = options.kind;
  const bool scaled = has_scale_factors(kind), integers = kind == MmaKind::i8;
  if (field(bits, 2, 1)) return "sparse A is not supported";
  if ((!integers && saturate) || field(bits, 6, 1) ||
      (scaled ? field(bits, 0, 2) || field(bits, 24, 3) : field(bits, 23, 1) || field(bits, 29, 1)))
    return "a reserved bit is set, or the one that saturates integers";
  if (a == OperandFormat::none || b == OperandFormat::none)
    return formatted("the type {} of {} is none of this kind", field(bits, a == OperandFormat::none ? 7 : 10, 3),
                     a == OperandFormat::none ? "A" : "B");
  if (kind == MmaKind::f16 && a != b) return formatted("A is {} and B is {}", name(a), name(b));
  if (scaled) {
    if (const std::string wrong = check_scale_factors(options, cta_group); !wrong.empty()) return wrong;
  } else if (const uint32_t d = field(bits, 4, 2);
             integers ? d != 2 : d > 1 || (d == 0 && (kind == MmaKind::tf32 || a == OperandFormat::bf16))) {
    return formatted("the type {} of D does not go with {}", d, name(a));
  }
  if (integers && (negate_a || negate_b)) return "integers cannot be negated";
  if (kind == MmaKind::tf32 && (transpose_a || transpose_b))
    return "TF32 with M or N contiguous is not supported (it needs 128-byte swizzling of 32-byte atoms)";
  for (const auto& [transposed, format] : {std::pair(transpose_a, a), std::pair(transpose_b, b)})
    if (transposed && format >= OperandFormat::packed_e2m1)
      return formatted("{} with M or N contiguous: only types of 8 and 16 bits can be", name(format));
  const uint32_t rows = m / cta_group;
  if (options.weight_stationary)
    return (rows == 32 || rows == 64 || rows == 128) && (n == 64 || n == 128 || n == 256)
               ? ""
               : formatted("there is no shape M {}, N {} with .ws", m, n);
  uint32_t step = cta_group == 1 && (rows == 64 || scaled) ? 8 : 16;
  if (integers) step = cta_group == 2 ? 32 : n > 32 ? 16 : 8;
  if (transpose_b && b != OperandFormat::f16 && b != OperandFormat::bf16) step = 16 * cta_group;
  if ((rows != 64 && rows != 128) || n < step || n > 256 || n % step)
    return formatted("there is no shape M {}, N {} with cta_group::{}", m, n, cta_group);
  return "";
}

/// PTX ISA 9.7.16.10.7, "Block Scaling".
std::string InstructionDescriptor::check_scale_factors(const MmaOptions& options, uint32_t cta_group) const {
  const bool packed = has_packed_fp4(options.kind);
  if (field(bits, 31, 1)) return packed ? "K 96 is not supported: sm_103a has it" : "a reserved bit is set";
  if (packed && field(bits, 12, 1)) return "a reserved bit is set";
  if (ue4m3 ? options.scale_factors != 4 : !field(bits, 23, 1))
    return formatted("scale factors of {} are UE8M0 (bit 23)", !packed ? "mxf8f6f4"
                                                               : options.kind == MmaKind::mxf4
                                                                   ? "mxf4"
                                                                   : "mxf4nvf4 with .scale_vec::2X");
  for (const auto& [id, matrix] : {std::pair(a_scale_byte, "A"), std::pair(b_scale_byte, "B")})
    if (id % options.scale_factors)
      return formatted("the scale factor ID {} of {}: with .scale_vec::{}X it is {}", id, matrix, options.scale_factors,
                       options.scale_factors == 2 ? "0 or 2" : "0");
  if (m != 128 * cta_group) return formatted("M is {}: with scale factors only {} is supported", m, 128 * cta_group);
  return "";
}

ZeroColumns::ZeroColumns(uint64_t bits, uint32_t m, uint32_t n) : shift(field(bits, 56, 6)) {
  if (!field(bits, 39, 1)) return;
  const uint32_t parts = TensorMemory::lanes / m, skipped = field(bits, 40, 8) + 1, used = field(bits, 48, 8) + 1;
  for (uint32_t part = 0; part < parts; ++part) {
    const uint32_t start = field(bits, int(8 * part), 8);
    const bool begins_skipped = field(bits, int(32 + part), 1);
    for (uint32_t c = 0; c < n / parts; ++c) {
      const uint32_t at = (start + c) % (skipped + used);
      zero[part * (n / parts) + c] = begins_skipped ? at < skipped : at >= used;
    }
  }
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
