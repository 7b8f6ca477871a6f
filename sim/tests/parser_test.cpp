#include "ptx/parser.h"

#include <elf.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <span>
#include <sstream>

#include "fatbin.h"
#include "tests/nvcc.h"

namespace sim::ptx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char head[] = ".version 9.0\n.target sm_90a\n.address_size 64\n";

/// A module with one kernel of this body; the body starts in line 5.
Module parse_body(const std::string& body) {
  return parse(head + std::string(".entry k(.param .u64 p, .param .u8 q, .param .align 16 .b8 r[20])\n{") + body +
               "}\n");
}

/// Why the module, or one of its functions, could not be read.
std::string failure_of(const std::string& text) {
  try {
    for (const Function& function : parse(text).functions)
      if (!function.refused.empty()) return function.refused;
  } catch (const PtxError& error) {
    return error.what();
  }
  return "";
}

std::string failure_of_body(const std::string& body) {
  return failure_of(head + std::string(".entry k(.param .u64 p)\n{") + body + "}\n");
}

TEST(Parser, ReadsTheHead) {
  const Module module = parse(head);
  EXPECT_EQ(module.version_major, 9u);
  EXPECT_EQ(module.version_minor, 0u);
  EXPECT_EQ(module.target, "sm_90a");
}

TEST(Parser, LaysOutParameters) {
  const Module module = parse(head + std::string(R"(
    .visible .entry k(.param .u32 a, .param .u64 .ptr .global .align 16 b, .param .u8 c, .param .align 16 .b8 d[20],
                      .param .f32 e) .maxntid 256, 1, 1 .minnctapersm 2 .reqnctapercluster 2, 1, 1 { ret; })"));
  const Function& k = module.functions.at(0);
  EXPECT_TRUE(k.is_entry);
  std::vector<uint64_t> offsets, sizes;
  for (const Variable& parameter : k.parameters) offsets.push_back(parameter.offset), sizes.push_back(parameter.size);
  EXPECT_THAT(offsets, ElementsAre(0, 8, 16, 32, 52));
  EXPECT_THAT(sizes, ElementsAre(4, 8, 1, 20, 4));
  EXPECT_EQ(k.parameter_bytes, 56u);
  EXPECT_THAT(k.maxntid, ElementsAre(256, 1, 1));
  EXPECT_THAT(k.reqnctapercluster, ElementsAre(2, 1, 1));
  EXPECT_EQ(k.minnctapersm, 2u);
}

TEST(Parser, ReadsEveryKindOfOperand) {
  const Module module = parse_body(R"(
    .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .f32 %f<4>; .reg .f64 %fd<1>;
    .shared .align 16 .b8 tile[64];
    @!%p1 ld.shared::cta.v2.f32 {%f1, _}, [tile+8];
    mov.u32 %r1, %ctaid.y;
    add.s32 %r2, %r1, -7;
    add.f32 %f2, %f1, 0fBF800000;
    mov.f64 %fd0, 0d3FF0000000000000;
    mov.u64 %rd1, tile+4;
    ld.global.f32 %f3, [%rd1+-16];
    setp.lt.and.s32 %p0|%p1, %r1, 0x10, !%p0;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0, {%r2, %r3}], [%r2];
    ret;)");
  const Function& k = module.functions[0];
  ASSERT_EQ(k.instructions.size(), 10u);
  const auto operand = [&](size_t instruction, size_t i) -> const Operand& {
    return k.instructions.at(instruction).operands.at(i);
  };
  const auto name = [&](const Operand& reg) {
    EXPECT_EQ(reg.kind, Operand::Kind::reg);
    return k.registers.at(reg.index).name;
  };

  const Instruction& load = k.instructions[0];
  EXPECT_EQ(load.mnemonic, "ld");
  EXPECT_THAT(load.modifiers, ElementsAre("shared::cta", "v2", "f32"));
  EXPECT_EQ(load.text, "@!%p1 ld.shared::cta.v2.f32 {%f1, _}, [tile+8];");
  EXPECT_EQ(load.line, 8u);
  EXPECT_EQ(k.registers.at(load.guard.reg).name, "%p1");
  EXPECT_TRUE(load.guard.negated);
  EXPECT_EQ(operand(0, 0).kind, Operand::Kind::vector);
  EXPECT_EQ(name(operand(0, 0).elements.at(0)), "%f1");
  EXPECT_EQ(operand(0, 0).elements.at(1).kind, Operand::Kind::sink);
  EXPECT_EQ(operand(0, 1).kind, Operand::Kind::address);
  EXPECT_EQ(operand(0, 1).symbol, (Symbol{Symbol::Kind::function_variable, 0}));
  EXPECT_EQ(operand(0, 1).offset, 8);

  EXPECT_EQ(operand(1, 1).kind, Operand::Kind::special);
  EXPECT_EQ(operand(1, 1).special, Special::ctaid_y);
  EXPECT_EQ(operand(2, 2).kind, Operand::Kind::integer);
  EXPECT_EQ(operand(2, 2).bits, uint64_t(-7));
  EXPECT_EQ(operand(3, 2).kind, Operand::Kind::float32);
  EXPECT_EQ(operand(3, 2).bits, 0xBF800000u);
  EXPECT_EQ(operand(4, 1).kind, Operand::Kind::float64);
  EXPECT_EQ(operand(4, 1).bits, 0x3FF0000000000000u);
  EXPECT_EQ(operand(5, 1).kind, Operand::Kind::symbol);
  EXPECT_EQ(operand(5, 1).offset, 4);
  EXPECT_TRUE(operand(6, 1).has_register);
  EXPECT_EQ(operand(6, 1).offset, -16);
  EXPECT_EQ(operand(7, 0).kind, Operand::Kind::pair);
  EXPECT_EQ(name(operand(7, 0).elements.at(1)), "%p1");
  EXPECT_EQ(operand(7, 2).bits, 16u);
  EXPECT_TRUE(operand(7, 3).negated);
  EXPECT_EQ(k.instructions[8].modifiers.back(), "mbarrier::complete_tx::bytes");
  EXPECT_EQ(k.registers.at(operand(8, 1).index).name, "%rd0");
  EXPECT_EQ(name(operand(8, 1).elements.at(0).elements.at(1)), "%r3");
  EXPECT_EQ(k.shared_bytes, 64u);
}

TEST(Parser, InnerBlocksHideRegistersAndLabels) {
  const Module module = parse_body(R"(
    .reg .pred c; .reg .b32 t;
    mov.b32 t, 0;
    L: { .reg .b32 t; mov.b32 t, 1; L: @c bra L; bra M; }
    { .reg .b32 t; mov.b32 t, 2; L: bra L; @c bra M; bra N; N: }
    mov.b32 t, 3; bra L;
    M: ret;)");
  const Function& k = module.functions[0];
  const auto& code = k.instructions;
  ASSERT_EQ(code.size(), 11u);
  EXPECT_EQ(code[0].operands[0].index, code[8].operands[0].index);
  EXPECT_NE(code[0].operands[0].index, code[1].operands[0].index);
  EXPECT_NE(code[1].operands[0].index, code[4].operands[0].index);
  EXPECT_EQ(code[2].operands[0].index, 2u);   // the inner L
  EXPECT_EQ(code[3].operands[0].index, 10u);  // M, further down and further out
  EXPECT_EQ(code[5].operands[0].index, 5u);
  EXPECT_EQ(code[7].operands[0].index, 8u);  // N
  EXPECT_EQ(code[9].operands[0].index, 1u);  // the outer L
}

TEST(Parser, ReadsVariablesAndTheirInitialValues) {
  const Module module = parse(head + std::string(R"(
    .func f;
    .extern .shared .align 128 .b8 dynamic[];
    .const .align 4 .b8 c[8] = {0, 0, 128, 63};
    .global .align 4 .u32 counter = 5;
    .global .align 8 .u64 at = generic(counter)+4;
    .global .attribute(.managed) .align 8 .u64 table[3] = {f, counter, 7};
    .global .v2 .f32 pair; .global .f32 half = 0f3F000000; .global .s32 less = -2;
    .func f { ret; }
    .entry k() { .reg .b64 a; .local .align 8 .b8 frame[12]; .local .b8 byte; mov.u64 a, dynamic; ret; })"));
  const auto variable = [&](const char* name) -> const Variable& { return *module.find_variable(name); };
  const auto bytes = [&](const char* name) {
    std::vector<int> values;
    for (const std::byte byte : variable(name).initial) values.push_back(static_cast<int>(byte));
    return values;
  };
  EXPECT_TRUE(variable("dynamic").is_extern);
  EXPECT_EQ(variable("dynamic").size, 0u);
  EXPECT_EQ(variable("c").space, StateSpace::constant);
  EXPECT_THAT(bytes("c"), ElementsAre(0, 0, 128, 63, 0, 0, 0, 0));
  EXPECT_THAT(bytes("counter"), ElementsAre(5, 0, 0, 0));
  EXPECT_THAT(bytes("half"), ElementsAre(0, 0, 0, 0x3f));
  EXPECT_THAT(bytes("less"), ElementsAre(0xfe, 0xff, 0xff, 0xff));
  EXPECT_EQ(variable("pair").alignment, 8u);
  EXPECT_TRUE(bytes("pair").empty());

  ASSERT_EQ(variable("at").relocations.size(), 1u);
  EXPECT_TRUE(variable("at").relocations[0].generic);
  EXPECT_EQ(variable("at").relocations[0].addend, 4);
  EXPECT_TRUE(variable("table").is_managed);
  ASSERT_EQ(variable("table").relocations.size(), 2u);
  EXPECT_EQ(variable("table").relocations[0].symbol.kind, Symbol::Kind::function);
  EXPECT_EQ(&module.variables[variable("table").relocations[1].symbol.index], &variable("counter"));
  EXPECT_EQ(variable("table").relocations[1].offset, 8u);
  EXPECT_EQ(bytes("table")[16], 7);

  const Function& k = *module.find_function("k");
  EXPECT_EQ(k.dynamic_shared_alignment, 128u);
  EXPECT_EQ(k.shared_bytes, 0u);
  EXPECT_EQ(k.local_bytes, 13u);
  EXPECT_EQ(module.functions.size(), 2u);  // f, declared and defined, is one
  EXPECT_FALSE(module.find_function("f")->is_declaration);
}

TEST(Parser, ResolvesCalls) {
  const Module module = parse(head + std::string(R"(
    .extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
    .func (.param .align 4 .b8 r[20]) f (.param .b32 a) { .shared .b8 s[12]; st.param.b32 [r+4], 1; ret; }
    .entry without() { .shared .b8 s[4]; ret; }
    .entry k() { .reg .b64 %rd<2>; .shared .align 8 .b8 own[8];
      { .param .b32 a; .param .align 4 .b8 r[20]; st.param.b32 [a+0], 3; call.uni (r), f, (a); }
      { .param .b64 a; .param .b64 b; .param .b32 r; call.uni (r), vprintf, (a, b); }
      { .param .b32 a; .param .b32 r; proto : .callprototype (.param .b32 _) _ (.param .b32 _);
        call (r), %rd1, (a), proto; }
      call f; ret; })"));
  const Function& k = *module.find_function("k");
  EXPECT_EQ(k.instructions[1].operands[1].symbol, (Symbol{Symbol::Kind::function, 1}));
  EXPECT_EQ(k.instructions[1].operands[0].elements.size(), 1u);
  EXPECT_EQ(k.instructions[2].operands[2].elements.size(), 2u);
  EXPECT_EQ(k.instructions[3].operands[1].kind, Operand::Kind::reg);
  EXPECT_EQ(k.instructions[3].operands[3].symbol, (Symbol{Symbol::Kind::prototype, 0}));
  EXPECT_TRUE(k.instructions[4].operands[2].elements.empty());
  EXPECT_EQ(k.call_param_bytes, 24u);  // the blocks share their place: 4 + 20, 8 + 8 + 4, 4 + 4
  EXPECT_TRUE(module.find_function("vprintf")->is_declaration);
  EXPECT_EQ(module.find_function("f")->result_bytes, 20u);
  // f's shared array comes first in every kernel that reaches f, and takes nothing in one that does not.
  EXPECT_EQ(module.find_function("f")->variables[0].offset, 0u);
  EXPECT_EQ(k.variables[0].offset, 16u);
  EXPECT_EQ(k.shared_bytes, 24u);
  EXPECT_EQ(module.find_function("without")->shared_bytes, 4u);
}

TEST(Parser, KnowsTheSourceLine) {
  const Module module = parse(head + std::string(R"(
    .file 1 "kernels/a.cu"
    .file 2 "common/b.h"
    .entry k() { bar.sync 0; .loc 1 26 3
      .loc 2 52 61, function_name $L__info_string0, inlined_at 1 26 3
      bar.sync 0; ret; }
    .section .debug_str { $L__info_string0: .b8 95,0 })"));
  const Function& k = module.functions[0];
  EXPECT_EQ(module.source_of(k, k.instructions[0]), "");
  EXPECT_EQ(module.source_of(k, k.instructions[1]), "common/b.h:52, inlined into kernels/a.cu:26");
}

TEST(Parser, ErrorsNameTheLineAndWhatWasExpected) {
  EXPECT_EQ(failure_of(""), "PTX line 1: expected .version, found the end of the text");
  EXPECT_THAT(failure_of(head + std::string(".entry k(.param .u32 a\n")), HasSubstr("line 5: expected \",\""));
  EXPECT_THAT(failure_of(head + std::string(".entry k()\n{ ret;")), HasSubstr("whose body starts in line 5"));
  EXPECT_THAT(failure_of_body("\nadd.s32 %r1, 1, 2;"),
              HasSubstr("line 6: \"%r1\" is neither a declared nor a special"));
  EXPECT_THAT(failure_of_body("\n\nbra L;"), HasSubstr("line 7: \"L\" is not declared"));
  EXPECT_THAT(failure_of_body("{ L: } bra L;"), HasSubstr("\"L\" is not declared"));
  EXPECT_THAT(failure_of_body("L: L: ret;"), HasSubstr("\"L\" is defined twice"));
  EXPECT_THAT(failure_of_body("bar.sync 0"), HasSubstr("expected \",\" or \";\", found \"}\""));
  EXPECT_THAT(failure_of_body(".reg .b32 %r<2>, %r<3>;"), HasSubstr("declared twice"));
  EXPECT_THAT(failure_of_body(".reg .b32 %r<2>; mov.b32 %r2, 0;"), HasSubstr("%r2"));
  EXPECT_THAT(failure_of_body(".reg .b32 %r<2147483647>;"), HasSubstr("registers"));
  EXPECT_THAT(failure_of_body(".reg .b32 a; @a ret;"), HasSubstr("predicate"));
  EXPECT_THAT(failure_of_body("mov.b32 x, 1;"), HasSubstr("\"x\" is not declared"));
  EXPECT_THAT(failure_of_body("ld.global.f32 _, [x];"), HasSubstr("\"x\" is not declared"));
  EXPECT_THAT(failure_of_body("call g;"), HasSubstr("expected a function"));
  EXPECT_THAT(failure_of_body("add.f32 _, 0f3F80, 1;"), HasSubstr("8 hexadecimal digits"));
  EXPECT_THAT(failure_of_body("# 1"), HasSubstr("no PTX token starts with '#'"));
  EXPECT_THAT(failure_of(head + std::string(".global .b8 a[2] = {1, 2, 3};")), HasSubstr("more initial values"));
  EXPECT_THAT(failure_of(head + std::string(".global .b8 a[99999999999999999];")), HasSubstr("2^40"));
}

TEST(Parser, WhatItCannotReadRefusesOneFunction) {
  const Module module = parse(std::string(head) +
                              ".global .texref t;\n"  // line 4
                              ".sampler { b, {1, 2} }\n.common .global .fancy .b8 v[4] = {1, {2}, 3};\n"
                              ".global .b32 x = 5;\n"
                              ".func f() { .reg .b32 r;\nmov.b32 r, %frobnication; { mov.b32 r, 1; } }\n"  // line 8
                              ".entry a() { call f, (); ret; }\n"                                          // line 10
                              ".entry b()\n{ .reg .b64 r;\nmov.b64 r, t; ret; }\n"
                              ".entry c() .fancy 1, 2 .maxntid 32\n{ ret; }\n"
                              ".entry d() { .reg .b32 r; frobnicate [r : 4] @ 7; { ret; } }\n"
                              ".entry e(.param .u32 p) { .reg .b32 r; ld.global.u32 r, [x]; frobnicate.b32 r, 1; }\n");
  const auto refused = [&](std::string_view name) { return module.find_function(name)->refused; };
  EXPECT_EQ(refused("f"), "PTX line 9: \"%frobnication\" is neither a declared nor a special register");
  EXPECT_EQ(refused("a"), "");
  EXPECT_EQ(refused("b"), "PTX line 13: \"t\" is not declared: PTX line 4: unknown attribute of a variable: .texref");
  EXPECT_EQ(refused("c"), "PTX line 14: unknown directive .fancy");
  EXPECT_THAT(refused("d"), StartsWith("PTX line 16: expected"));
  EXPECT_EQ(refused("e"), "");  // an instruction is the executor's to know
  EXPECT_TRUE(module.find_function("b")->instructions.empty());
  EXPECT_EQ(module.find_function("c")->maxntid[0], 32U);
  EXPECT_EQ(module.find_function("e")->instructions.size(), 2U);
  EXPECT_EQ(module.find_function("e")->parameter_bytes, 4U);
  ASSERT_EQ(module.variables.size(), 1U);
  EXPECT_EQ(module.variables[0].name, "x");
}

// What nvcc makes of this repository ------------------------------------------------------------------------------------

/// Calls f(PTX) for each PTX in an executable: its section .nv_fatbin has one container per source file.
template <class F>
void for_each_ptx(const std::filesystem::path& executable, const F& f) {
  const std::string file = test::read_file(executable);
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), file.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& section : sections) {
    if (file.data() + sections[header.e_shstrndx].sh_offset + section.sh_name != std::string(".nv_fatbin")) continue;
    auto rest = std::as_bytes(std::span(file)).subspan(section.sh_offset, section.sh_size);
    while (rest.size() > 16) {
      uint32_t magic;
      std::memcpy(&magic, rest.data(), 4);
      if (magic != 0xba55ed50) {  // padding
        rest = rest.subspan(8);
        continue;
      }
      uint64_t size;  // without the 16 bytes before it
      std::memcpy(&size, rest.data() + 8, 8);
      for (const PtxImage& image : ptx_images(rest.first(16 + size))) f(image.text);
      rest = rest.subspan(std::min<size_t>(16 + (size + 7) / 8 * 8, rest.size()));
    }
  }
}

/// Of one of the programs.
std::string ptx_of(const std::string& program) {
  return test::compiled(SIM_SOURCE "/tests/programs/" + program, "-ptx -lineinfo -arch=compute_90a");
}

/// The number of statements in each body, counted without the grammar: a statement ends in ';' and does not start, after
/// its labels, with a dot.
std::map<std::string, size_t> counted(const std::string& text) {
  std::map<std::string, size_t> counts;
  std::string function, statement;
  int depth = 0;
  bool in_section = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (const size_t comment = line.find("//"); comment != line.npos) line.resize(comment);
    const size_t start = line.find_first_not_of(" \t");
    if (start == line.npos) continue;
    line.erase(0, start);
    if (line.starts_with(".section")) in_section = true;
    if (in_section) {
      in_section = line.find('}') == line.npos;
      continue;
    }
    if (line.starts_with(".loc") || line.starts_with(".file")) continue;
    if (depth == 0) {
      for (const char* directive : {".entry ", ".func "})
        if (const size_t at = line.find(directive); at != line.npos) {
          std::string rest = line.substr(at + std::string(directive).size());
          if (const size_t result = rest.find(") "); result != rest.npos && rest.find('(') < result)
            rest.erase(0, result + 2);
          rest.erase(0, rest.find_first_not_of(' '));
          function = rest.substr(0, rest.find_first_of("( ;"));
        }
      if (line == "{") depth = 1;
      continue;
    }
    for (const char c : line + " ") {
      if ((c == '{' || c == '}') && statement.find_first_not_of(" \t") == statement.npos) {
        depth += c == '{' ? 1 : -1;
        statement.clear();
      } else if (c == ':' && statement.find_first_of(".,[") == statement.npos) {
        statement.clear();
      } else if (c == ';') {
        const size_t first = statement.find_first_not_of(" \t");
        if (first != statement.npos && statement[first] != '.') ++counts[function];
        statement.clear();
      } else {
        statement += c;
      }
    }
  }
  return counts;
}

/// Of every program here, for each architecture that it was built for; and of another one, SIM_TESTS_PARSE=FILE.
TEST(Parser, ReadsAllThatNvccMakesOfThePrograms) {
  size_t functions = 0, texts = 0;
  std::set<std::string> refused;
  const auto check = [&](const std::string& text) {
    ++texts;
    Module module;
    ASSERT_NO_THROW(module = parse(text));
    const std::map<std::string, size_t> expected = counted(text);
    for (const Function& function : module.functions) {
      if (function.is_declaration) continue;
      if (!function.refused.empty()) {
        refused.insert(function.name);
        continue;
      }
      ++functions;
      ASSERT_TRUE(expected.contains(function.name)) << function.name;
      EXPECT_EQ(function.instructions.size(), expected.at(function.name)) << function.name;
      for (const Instruction& instruction : function.instructions)
        for (const Operand& operand : instruction.operands) {
          if (operand.kind == Operand::Kind::reg) {
            ASSERT_LT(operand.index, function.registers.size());
          }
          if (operand.kind == Operand::Kind::label) {
            ASSERT_LE(operand.index, function.instructions.size());
          }
        }
    }
  };
  std::vector<std::filesystem::path> executables;
  if (const char* const another = std::getenv("SIM_TESTS_PARSE")) executables.push_back(another);
  for (const auto& file : std::filesystem::directory_iterator(SIM_PROGRAMS_DIR))
    if (file.is_regular_file()) executables.push_back(file.path());
  ASSERT_GE(executables.size(), 20u);
  for (const std::filesystem::path& executable : executables) {
    SCOPED_TRACE(executable);
    for_each_ptx(executable, check);
  }
  EXPECT_EQ(refused, (std::set<std::string>{"_Z14unknown_syntaxPi", "_Z16unknown_registerPi", "_Z7countedi"}));
  EXPECT_GE(texts, 30u);
  EXPECT_GE(functions, 100u);
}

std::string survive(const std::string& text) {
  const std::string failure = failure_of(text);  // throws on nothing but PtxError
  if (!failure.empty()) {
    EXPECT_THAT(failure, StartsWith("PTX line "));
  }
  return failure;
}

TEST(Parser, SurvivesTextsThatAreCutOff) {
  const std::string text = ptx_of("reduction.cu");
  const size_t last_body = text.find("\n}", text.rfind(".entry"));
  ASSERT_NE(last_body, text.npos);
  size_t failures = 0;
  for (size_t size = 0; size < text.size(); ++size) failures += !survive(text.substr(0, size)).empty();
  EXPECT_GT(failures, text.size() / 2);
  const std::string large = ptx_of("mma_gemm.cu");
  for (size_t size = 0; size < large.size(); size += 97) survive(large.substr(0, size));
}

TEST(Parser, SurvivesDamagedTexts) {
  const std::string text = ptx_of("reduction.cu");
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = text;
    for (size_t changes = 1 + below(4); changes; --changes) {
      const size_t at = below(damaged.size()), length = 1 + below(40);
      switch (below(4)) {
        case 0:
          damaged[at] ^= static_cast<char>(1 << below(8));
          break;
        case 1:
          damaged[at] = "{}()[]<>;:,.@!%0x-+|=\"_"[below(23)];
          break;
        case 2:
          damaged.erase(at, length);
          break;
        default:
          damaged.insert(at, damaged.substr(below(damaged.size()), length));
          break;
      }
    }
    survive(damaged);
  }
}

}  // namespace
}  // namespace sim::ptx
