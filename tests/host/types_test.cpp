#include "common/types.h"

#include <gmock/gmock.h>

namespace ladder {
namespace {

using testing::HasSubstr;

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(Types, HaveNamesAndSizes) {
  std::string names;
  for (const Type type : AllTypes::list) names += name(type) + " ";
  EXPECT_EQ(names, "f32 tf32 bf16 f16 e4m3 e5m2 e2m1 ");
  EXPECT_EQ(operand_bytes(Type::tf32), 4);
  EXPECT_EQ(operand_bytes(Type::bf16), 2);
  EXPECT_EQ(result_bytes(Type::f16, Out::f32), 4);
  EXPECT_EQ(result_bytes(Type::f16, Out::same), 2);
  EXPECT_EQ(operand_bytes(Type::e4m3), 1);
  EXPECT_EQ(result_bytes(Type::e4m3, Out::f32), 4);
  EXPECT_EQ(result_bytes(Type::e4m3, Out::same), 2) << "BF16";
  EXPECT_EQ(facts(Type::e4m3).cuda_result, CUDA_R_16BF);
  EXPECT_EQ(operand_bytes(Type::e2m1, 6), 3);
}

TEST(Types, HaveTheSameElementInAAndBButForE5M2) {
  for (const Type type : AllTypes::list) EXPECT_EQ(of_b(type) == type, type != Type::e5m2) << name(type);
  EXPECT_EQ(facts(Type::e5m2).cuda, CUDA_R_8F_E5M2);
  EXPECT_EQ(facts(of_b(Type::e5m2)).cuda, CUDA_R_8F_E4M3);
  EXPECT_EQ(operand_bytes(of_b(Type::e5m2)), operand_bytes(Type::e5m2));
  EXPECT_EQ(result_bytes(Type::e5m2, Out::same), 2) << "BF16";
}

TEST(Types, AreChosenWithTheElementOfTheResult) {
  const auto bytes = [](Type type, Out out) {
    return visit(AllTypes{}, type, out, [&]<Type row, class C>() { return Operand<row>::BYTES * 10 + int{sizeof(C)}; });
  };
  EXPECT_EQ(bytes(Type::f32, Out::same), 44);
  EXPECT_EQ(bytes(Type::bf16, Out::f32), 24);
  EXPECT_EQ(bytes(Type::bf16, Out::same), 22);
  EXPECT_EQ(bytes(Type::e4m3, Out::same), 12);
  const auto result = [](Out out) {
    return visit(AllTypes{}, Type::e4m3, out, []<Type, class C>() { return std::is_same_v<C, __nv_bfloat16>; });
  };
  EXPECT_TRUE(result(Out::same));
  EXPECT_FALSE(result(Out::f32));
}

TEST(Types, OfFourBitsShareBytes) {
  const unsigned char bytes[] = {0x21, 0xF7};
  const Elements<__nv_fp4_e2m1> elements{bytes};
  EXPECT_EQ(to_float(elements[0]), 0.5F);
  EXPECT_EQ(to_float(elements[1]), 1.0F);
  EXPECT_EQ(to_float(elements[2]), 6.0F);
  EXPECT_EQ(to_float(elements[3]), -6.0F);
  EXPECT_EQ(to_float(from_float<__nv_fp4_e2m1>(2.4F)), 2.0F);
  EXPECT_EQ(to_float(from_float<__nv_fp4_e2m1>(-100.0F)), -6.0F);
}

TEST(Types, ThatAreNotServedAreRefusedByName) {
  const auto nothing = [&]<Type type>() { return 0; };
  EXPECT_THAT(refusal([&] { visit(MmaSyncTypes{}, Type::f32, nothing); }), HasSubstr("f32 is not served"));
  constexpr Type unknown = static_cast<Type>(99);
  EXPECT_THAT(refusal([&] { visit(AllTypes{}, unknown, nothing); }), HasSubstr("type 99 is not served"));
  EXPECT_THAT(refusal([&] { facts(unknown); }), HasSubstr("type 99"));
  EXPECT_THAT(refusal([&] { operand_bytes(unknown); }), HasSubstr("type 99"));
}

TEST(Types, ConvertToTheNearestElement) {
  EXPECT_EQ(to_float(from_float<__half>(1.0F + 0x1p-11F)), 1.0F);  // a tie: to even
  EXPECT_EQ(to_float(from_float<__half>(1.0F + 3 * 0x1p-11F)), 1.0F + 0x1p-9F);
  EXPECT_EQ(to_float(from_float<__nv_bfloat16>(1.0F + 0x1p-8F)), 1.0F);
  EXPECT_EQ(to_float(from_float<float>(0.1F)), 0.1F);
  EXPECT_EQ(to_float(from_float<__nv_fp8_e4m3>(1.0625F)), 1.0F);  // a tie
  EXPECT_EQ(to_float(from_float<__nv_fp8_e4m3>(1.1875F)), 1.25F);
  EXPECT_EQ(to_float(from_float<__nv_fp8_e4m3>(0x1p-9F)), 0x1p-9F);  // the least
  EXPECT_EQ(to_float(from_float<__nv_fp8_e4m3>(5.9F * facts(Type::e4m3).scale)), 384.0F) << "below the largest, 448";
  EXPECT_EQ(to_float(from_float<__nv_fp8_e5m2>(1.125F)), 1.0F);  // a tie
  EXPECT_EQ(to_float(from_float<__nv_fp8_e5m2>(1.375F)), 1.5F);
  EXPECT_EQ(to_float(from_float<__nv_fp8_e5m2>(0x1p-16F)), 0x1p-16F);  // the least
}

}  // namespace
}  // namespace ladder
