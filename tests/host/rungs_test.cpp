// What rungs state about themselves, and what is derived from it: who may run it, which ceiling binds, what --list prints.
#include "common/rung.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <stdexcept>

#include "common/harness/cli/list.h"
#include "common/harness/cli/options.h"
#include "common/harness/timing/ceilings.h"

namespace ladder {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST(Rungs, AreSortedAndStateWhatTheHarnessNeeds) {
  ASSERT_GE(rungs().size(), 10U);
  for (size_t i = 0; i < rungs().size(); ++i) {
    const Rung& rung = rungs()[i];
    if (i > 0) {
      EXPECT_LT(std::string(rungs()[i - 1].number), rung.number);
    }
    EXPECT_FALSE(rung.types.empty()) << rung.stem();
    EXPECT_LE(std::string(rung.idea).size(), 90U) << rung.stem() << ": the idea is one short line";
    EXPECT_NO_THROW(parse_arch(rung.arch)) << rung.stem();
    EXPECT_THAT(rung.source, EndsWith("/" + rung.stem() + ".cu"));
    const auto is_predecessor = [&](const Rung& other) { return std::string(other.number) == rung.predecessor; };
    EXPECT_TRUE(*rung.predecessor == '\0' || std::any_of(rungs().begin(), rungs().begin() + i, is_predecessor))
        << rung.stem() << " changes '" << rung.predecessor << "', which does not come before it";
  }
}

TEST(Rungs, WithoutALetterAreSteps) {
  for (const Rung& rung : rungs()) {
    if (std::string(rung.number).size() == 2) {
      EXPECT_EQ(rung.kind, Kind::step) << rung.stem();
    }
  }
}

TEST(Rungs, InFp32FormShareTheNumberOfAnother) {
  for (const Rung& rung : rungs()) {
    if (rung.kind != Kind::fp32_form) continue;
    EXPECT_THAT(rung.types, testing::ElementsAre(Type::f32)) << rung.stem();
    const auto same_number = [&](const Rung& other) { return std::string(rung.number).substr(0, 2) == other.number; };
    EXPECT_TRUE(std::any_of(rungs().begin(), rungs().end(), same_number)) << rung.stem();
  }
}

TEST(Arch, IsTheLeastOrExactlyOne) {
  EXPECT_EQ(why_not_on("sm_80", 80), "");
  EXPECT_EQ(why_not_on("sm_80", 120), "");
  EXPECT_EQ(why_not_on("sm_80", 75), "needs sm_80, this is sm_75");
  EXPECT_EQ(why_not_on("sm_90a", 90), "");
  EXPECT_EQ(why_not_on("sm_90a", 80), "needs exactly sm_90a, this is sm_80");
  EXPECT_EQ(why_not_on("sm_90a", 100), "needs exactly sm_90a, this is sm_100");
  for (const char* text : {"", "80", "sm_", "sm_a", "sm_90ab", "sm_80 "})
    EXPECT_THROW(parse_arch(text), std::invalid_argument) << text;
}

TEST(Ceilings, AreNamedByInstructionAndType) {
  EXPECT_EQ(ceiling_name(MathInstruction::ffma, Type::f32), "fp32_fma");
  EXPECT_EQ(ceiling_name(MathInstruction::mma_sync, Type::bf16), "mma_bf16");
  EXPECT_EQ(ceiling_name(MathInstruction::wgmma, Type::bf16), "wgmma_bf16");
  EXPECT_EQ(ceiling_name(MathInstruction::tcgen05, Type::bf16), "tcgen05_bf16");
}

TEST(List, HoldsEveryFactOfARung) {
  const std::string json = list_json(select_rungs("05,10", rungs()));
  EXPECT_THAT(json, HasSubstr(R"({"name":"bf16","bytes":2,"result_bytes":{"f32":4,"same":2}})"));
  EXPECT_THAT(json, HasSubstr(R"("families":{"square":[[256,256,256],[512,512,512],)"));
  EXPECT_THAT(json, HasSubstr(R"("number":"10","name":"mma_ptx","stem":"10_mma_ptx",)"));
  EXPECT_THAT(
      json,
      HasSubstr(
          R"("predecessor":"09b","kind":"step","types":["bf16","f16","tf32"],"arch":"sm_75","instruction":"mma.sync",)"));
  EXPECT_THAT(json, HasSubstr(R"("layout_b":"col_major","row_align_bytes":16,"plans":false,)"));
  EXPECT_THAT(json, HasSubstr(R"("sums":{"bf16":"f32","f16":"f32","tf32":"f32"},)"));
  EXPECT_THAT(json, HasSubstr(R"("ceilings":{"bf16":"mma_bf16","f16":"mma_f16","tf32":"mma_tf32"},)"));
  EXPECT_THAT(json, HasSubstr(R"("source":"kernels/10_mma_ptx.cu"})"));
  EXPECT_THAT(json, HasSubstr(R"("instruction":"FFMA","layout_b":"row_major","row_align_bytes":16,)"));
  EXPECT_THAT(list_text(select_rungs("05,10", rungs())), HasSubstr("bf16 f16 tf32  mma.sync    sm_75\n"));
}

TEST(List, SaysWhatALetterMeans) {
  EXPECT_THAT(list_text(select_rungs("10b", rungs())), HasSubstr("10b   c_in_smem  counter-example  "));
  EXPECT_THAT(list_json(select_rungs("06b,17f,21b", rungs())),
              testing::AllOf(HasSubstr(R"("predecessor":"06","kind":"variant",)"),
                             HasSubstr(R"("predecessor":"08","kind":"FP32 form",)"),
                             HasSubstr(R"("predecessor":"21","kind":"step",)")));
}

TEST(List, SaysWhoseSumsAreFp16) {
  Rung rung = *select_rungs("10", rungs()).front();
  rung.fp16_sums = {Type::f16};
  EXPECT_THAT(list_json({&rung}), HasSubstr(R"("sums":{"bf16":"f32","f16":"f16","tf32":"f32"},)"));
  EXPECT_THAT(list_text({&rung}), HasSubstr("bf16 f16 (FP16 sums) tf32  mma.sync"));
}

}  // namespace
}  // namespace ladder
