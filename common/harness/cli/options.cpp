#include "common/harness/cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>

#include "common/harness/cli/nearest.h"
#include "common/harness/error.h"
#include "common/harness/simulator.h"
#include "common/scales.h"
#include "common/text.h"
#include "sim/checks.h"

namespace ladder {
namespace {

/// A set of words and what each stands for.
template <class T>
using Choices = std::vector<std::pair<std::string, T>>;

Choices<Type> types() {
  Choices<Type> choices;
  for (const Type type : AllTypes::list) choices.emplace_back(name(type), type);
  return choices;
}
const Choices<Out> outs = {{"f32", Out::f32}, {"same", Out::same}};
const Choices<Scales> scale_modes = {{"none", Scales::none},     {"tensor", Scales::tensor}, {"rows", Scales::rows},
                                     {"blocks", Scales::blocks}, {"mx", Scales::mx},         {"nv", Scales::nv}};
const Choices<Layouts> layout_words = {{"nn", {MatrixLayout::row_major, MatrixLayout::row_major}},
                                       {"nt", {MatrixLayout::row_major, MatrixLayout::col_major}},
                                       {"tn", {MatrixLayout::col_major, MatrixLayout::row_major}},
                                       {"tt", {MatrixLayout::col_major, MatrixLayout::col_major}}};
const Choices<Init> inits = {
    {"normal", Init::normal}, {"uniform", Init::uniform}, {"integer", Init::integer}, {"zeros", Init::zeros}};
const Choices<GroupRows> group_row_words = {
    {"equal", GroupRows::equal}, {"random", GroupRows::random}, {"one", GroupRows::one}};
const Choices<Protocol> protocols = {{"rounds", Protocol::rounds}, {"steady", Protocol::steady}};
const Choices<CheckMode> checks = {{"full", CheckMode::full}, {"sample", CheckMode::sample}, {"off", CheckMode::off}};
const Choices<bool> l2_states = {{"cold", true}, {"warm", false}};

template <class T>
std::vector<std::string> words(const Choices<T>& choices) {
  std::vector<std::string> result;
  for (const auto& choice : choices) result.push_back(choice.first);
  return result;
}
template <class T>
T choose(const std::string& option, const std::string& word, const Choices<T>& choices) {
  for (const auto& [candidate, value] : choices)
    if (candidate == word) return value;
  throw UsageError(
      formatted("{} takes {}, got '{}'{}", option, joined(words(choices), ", "), word, hint(word, words(choices))));
}
template <class T>
std::string word_of(T value, const Choices<T>& choices) {
  for (const auto& [word, candidate] : choices)
    if (candidate == value) return word;
  return "";
}

/// The words of an epilogue, in the order in which it applies them, and what each adds to one.
const std::vector<std::pair<std::string, Epilogue>> epilogue_words = {{"none", {}},
                                                                      {"bias", {.bias = true}},
                                                                      {"gelu", {.activation = Activation::gelu}},
                                                                      {"silu", {.activation = Activation::silu}},
                                                                      {"gate", {.gate = true}},
                                                                      {"quantise", {.quantise = true}}};

Epilogue parse_epilogue(const std::string& text) {
  Epilogue epilogue;
  std::stringstream parts(text);
  for (std::string word; std::getline(parts, word, ',');) {
    const Epilogue added = choose("--epilogue", word, epilogue_words);
    if (added.activation != Activation::none && epilogue.activation != Activation::none)
      throw UsageError(formatted("--epilogue takes one activation, got '{}'", text));
    epilogue.bias |= added.bias;
    epilogue.gate |= added.gate;
    epilogue.quantise |= added.quantise;
    if (added.activation != Activation::none) epilogue.activation = added.activation;
  }
  return epilogue;
}

float parse_float(const std::string& option, const std::string& text) {
  size_t used = 0;
  float value = NAN;
  try {
    value = std::stof(text, &used);
  } catch (const std::exception&) {  // falls through to the message below
  }
  if (used != text.size() || !std::isfinite(value))
    throw UsageError(formatted("{} takes a finite number, got '{}'", option, text));
  return value;
}

long long parse_count(const std::string& option, const std::string& text, long long least, long long most) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    throw UsageError(formatted("{} takes a whole number from {} to {}, got '{}'", option, least, most, text));
  return value;
}

}  // namespace

std::string name(Out out) { return word_of(out, outs); }
std::string name(Init init) { return word_of(init, inits); }
std::string name(GroupRows rows) { return word_of(rows, group_row_words); }
std::string name(const Layouts& layouts) { return word_of(layouts, layout_words); }
std::string name(Protocol protocol) { return word_of(protocol, protocols); }
std::string name(const Epilogue& epilogue) {
  std::vector<std::string> words;
  for (const auto& [word, one] : epilogue_words)
    if ((one.bias && epilogue.bias) || (one.gate && epilogue.gate) || (one.quantise && epilogue.quantise) ||
        (one.activation != Activation::none && one.activation == epilogue.activation))
      words.push_back(word);
  return words.empty() ? "none" : joined(words, ",");
}

std::vector<const Rung*> select_rungs(const std::string& text, const std::vector<Rung>& all) {
  std::vector<std::string> known;
  for (const Rung& rung : all) known.insert(known.end(), {rung.number, rung.stem()});

  // "6" and "06_bank_conflict_free" both mean "06".
  const auto number_of = [&](std::string word) -> std::string {
    if (word.size() == 1 || (word.size() == 2 && std::isalpha(static_cast<unsigned char>(word[1])))) word = "0" + word;
    for (const Rung& rung : all)
      if (word == rung.number || word == rung.name || word == rung.stem()) return rung.number;
    throw UsageError(formatted("there is no rung '{}'{}", word, hint(word, known, "; --list lists all")));
  };

  std::vector<bool> chosen(all.size(), false);
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    if (part.empty()) throw UsageError(formatted("--kernels takes rungs such as 05,07-09,12b, got '{}'", text));
    const size_t dash = part.find('-');
    const std::string first = number_of(part.substr(0, dash));
    const std::string last = dash == std::string::npos ? first : number_of(part.substr(dash + 1));
    if (last < first) throw UsageError(formatted("--kernels takes a range from low to high, got '{}'", part));
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string number = all[i].number;
      const bool variant_of_last = dash != std::string::npos && number.substr(0, 2) == last;
      if (number >= first && (number <= last || variant_of_last)) chosen[i] = true;
    }
  }
  std::vector<const Rung*> result;
  for (size_t i = 0; i < all.size(); ++i)
    if (chosen[i]) result.push_back(&all[i]);
  return result;
}

Options parse_options(int argc, const char* const* argv, bool& finished) {
  Options options;
  options.command = joined(std::vector<std::string>(argv, argv + argc), " ");
  const bool single = rungs().size() == 1;

  std::string kernels, type, out = "f32", scales = "none", layout, epilogue = "none", shapes, alpha = "1", beta = "0",
                             ld_pad = "0", init = "normal", seed = "1";
  std::string l2 = "cold", protocol = "rounds", round_count, sitting_count = "1", check = "full", device = "0",
              sim_seed;
  std::string groups = "0", group_rows = "equal";
  std::vector<std::string> sizes;

  std::vector<std::string> families;
  for (const ShapeFamily& family : shape_families()) families.push_back(family.name);

  CLI::App app(single ? formatted("{}: {}", rungs()[0].stem(), rungs()[0].idea)
                      : "Checks the rungs of the ladder against cuBLAS and times them beside it.");
  app.set_help_flag("--help,-h", "This text");
  app.add_option("sizes", sizes,
                 "Of one problem, D = alpha A B + beta C; 4096 4096 4096 without, 256 256 256 on the simulator")
      ->type_name("M N K");
  app.add_flag("--list", options.list, "Every rung: number, name, kind, idea, types, instruction, architecture");
  app.add_flag("--json", options.json, "With --list: all that the rungs state about themselves, for scripts");
  app.add_flag("--explain", options.explain, "How each rung would go about each problem; runs nothing");
  app.add_flag("--tune", options.tune,
               "First time all ways in which a rung can go about each problem; keep the fastest in --plans");
  app.add_option("--plans", options.plans,
                 "Go about problems in the way that --tune found; made where it does not exist");
  app.add_option("--kernels", kernels, "Rungs, such as 05,07-09,12b; without, all, or those that compute --type");
  app.add_option("--type", type, formatted("{}; each rung's first without", joined(words(types()), ", ")));
  app.add_option("--out", out, "Type of the result: f32, or same as the operands");
  app.add_option(
      "--scales", scales,
      "What A and B are multiplied by, element by element: none; tensor, one scale each; rows, one per row "
      "of A and column of B; blocks, one per 128 along k, of B for 128 columns; mx and nv, one per 32 or 16 along k");
  app.add_option("--layout", layout,
                 "How A and B are stored: n, row by row as in the product, or t, transposed: nn, nt, tn or tt; each "
                 "rung's own without");
  app.add_option("--shapes", shapes, formatted("MxNxK,..., a family ({}) or a file", joined(families, ", ")));
  app.add_option("--groups", groups,
                 "So many products, each with a B of its own, which share the rows of A and C; 0, the default: one");
  app.add_option("--group-rows", group_rows,
                 "How many rows each group has: equal, random (from none to twice the mean) or one (it has all)");
  app.add_option("--alpha", alpha, "Factor of A B; 1 without");
  app.add_option("--beta", beta, "Factor of C; 0 without, and then C is not read");
  app.add_option("--epilogue", epilogue,
                 formatted("What is applied to A B before C is added: some of {}", joined(words(epilogue_words), ",")));
  app.add_option("--ld-pad", ld_pad,
                 "Elements added to each leading dimension, 0 without; align: rounded up to 16 bytes");
  app.add_option("--init", init, "Data: normal, uniform, integer or zeros");
  app.add_option("--seed", seed, "Of the data");
  app.add_option("--l2", l2, "cold: operands rotate over more than twice the L2; warm: one set");
  app.add_option("--protocol", protocol,
                 "rounds: interleaved with the baselines; steady: blocks of a third of a second");
  app.add_option("--rounds", round_count, "How many rounds; chosen by time without");
  app.add_option("--sittings", sitting_count,
                 "N: measure everything N times, each time in another order, in about the time of one measurement; "
                 "I/N: only up to "
                 "sitting I of N (earlier ones are skipped with --resume)");
  app.add_option("--check", check, "full: every element; sample: 4096 elements; off");
  app.add_flag("--check-only", options.check_only, "Check, do not time");
  app.add_option("--csv", options.csv, "Append one row per kernel, shape and sitting");
  app.add_option("--samples-csv", options.samples_csv, "Append every single time");
  app.add_flag("--resume", options.resume, "Skip what --csv already holds from this commit");
  app.add_option("--ceilings", options.ceilings, "Ceilings measured before (by bin/ceilings); measured now without");
  app.add_option("--environment", options.environment, "Write GPU, versions, host and commit as JSON");
  app.add_option("--device", device, "Number of the GPU");
  app.add_flag("--sim", options.sim,
               "Run on the simulator: checked and counted, not timed; chosen by itself where there is no GPU");
  app.add_option("--sim-gpu", options.sim_gpu,
                 formatted("The GPU that it describes: {}", joined(simulated_gpus(), ", ")));
  app.add_option("--sim-seed", sim_seed, "Of the order in which the simulator's warps run");
  app.add_option("--sim-checks", options.sim_checks,
                 "What the simulator's checks do, CHECK=off, warn or error: race=warn,exited=off or all=warn");
  app.add_option("--sim-counts", options.sim_counts, "Write what each source line did on the simulator, as CSV");

  finished = false;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    print(stdout, "{}", app.help());
    finished = true;
    return options;
  } catch (const CLI::ExtrasError&) {
    app.allow_extras();
    std::string extra;
    try {
      app.parse(argc, argv);
      extra = app.remaining().empty() ? "" : app.remaining().front();
    } catch (const CLI::ParseError&) {  // reported below all the same
    }
    if (extra.size() > 1 && extra[0] == '-' && std::isdigit(static_cast<unsigned char>(extra[1])))
      throw UsageError(formatted("M, N and K must be whole numbers from 1 on, got '{}'", extra));
    std::vector<std::string> known;
    for (const CLI::Option* option : app.get_options())
      if (!option->get_positional()) known.push_back(option->get_name());
    throw UsageError(formatted("there is no option '{}'{}", extra, hint(extra, known, "; --help lists all")));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }

  options.rungs = kernels.empty()
                      ? select_rungs(formatted("{}-{}", rungs().front().number, rungs().back().number), rungs())
                      : select_rungs(kernels, rungs());
  if (!type.empty()) options.type = choose("--type", type, types());
  const auto computes = [&](const Rung* rung) {
    return !options.type || std::find(rung->types.begin(), rung->types.end(), *options.type) != rung->types.end();
  };
  if (kernels.empty() && std::any_of(options.rungs.begin(), options.rungs.end(), computes))
    std::erase_if(options.rungs, [&](const Rung* rung) { return !computes(rung); });
  options.out = choose("--out", out, outs);
  options.scales = choose("--scales", scales, scale_modes);
  if (!layout.empty()) options.layouts = choose("--layout", layout, layout_words);
  options.groups = static_cast<int>(parse_count("--groups", groups, 0, 1 << 20));
  options.group_rows = choose("--group-rows", group_rows, group_row_words);
  if (app.count("--group-rows") && options.groups == 0) throw UsageError("--group-rows belongs to --groups");
  options.alpha = parse_float("--alpha", alpha);
  options.beta = parse_float("--beta", beta);
  options.epilogue = parse_epilogue(epilogue);
  options.ld_pad = ld_pad == "align" ? ld_align : static_cast<int>(parse_count("--ld-pad", ld_pad, 0, 1 << 20));
  options.init = choose("--init", init, inits);
  options.seed = static_cast<uint64_t>(parse_count("--seed", seed, 0, 999'999'999'999'999'999));
  options.cold = choose("--l2", l2, l2_states);
  options.protocol = choose("--protocol", protocol, protocols);
  if (!round_count.empty()) options.rounds = static_cast<int>(parse_count("--rounds", round_count, 1, 10'000));
  if (const size_t slash = sitting_count.find('/'); slash == std::string::npos) {
    options.sittings = static_cast<int>(parse_count("--sittings", sitting_count, 1, 100));
  } else {
    options.sittings = static_cast<int>(parse_count("--sittings", sitting_count.substr(slash + 1), 1, 100));
    options.until_sitting =
        static_cast<int>(parse_count("--sittings", sitting_count.substr(0, slash), 1, options.sittings));
  }
  options.check = choose("--check", check, checks);
  options.device = static_cast<int>(parse_count("--device", device, 0, 1023));
  if (const std::vector<std::string>& gpus = simulated_gpus();
      !options.sim_gpu.empty() && std::find(gpus.begin(), gpus.end(), options.sim_gpu) == gpus.end())
    throw UsageError(
        formatted("--sim-gpu takes {}, got '{}'{}", joined(gpus, ", "), options.sim_gpu, hint(options.sim_gpu, gpus)));
  if (const std::string wrong = options.sim_checks.empty() ? "" : sim::Checks().change(options.sim_checks);
      !wrong.empty())
    throw UsageError("--sim-checks: " + wrong);
  if (!sim_seed.empty()) {
    parse_count("--sim-seed", sim_seed, 0, 999'999'999'999'999'999);
    options.sim_seed = sim_seed;
  }
  if (options.epilogue.quantise && options.beta != 0.0F)
    throw UsageError("--epilogue quantise and --beta exclude each other: C has no scales yet");
  if (options.epilogue.quantise && options.check == CheckMode::sample)
    throw UsageError("--epilogue quantise needs --check full: a scale is of 128 elements");
  if (options.json && !options.list) throw UsageError("--json belongs to --list");
  if (options.check_only && options.check == CheckMode::off)
    throw UsageError("--check-only and --check off exclude each other");
  if (options.check_only && options.tune) throw UsageError("--check-only and --tune exclude each other");
  if (options.tune && options.plans.empty()) throw UsageError("--tune needs --plans, the file to keep what it finds");
  if (options.resume && options.csv.empty()) throw UsageError("--resume needs --csv, the file to resume from");

  if (!sizes.empty() && !shapes.empty()) throw UsageError("give M N K or --shapes, not both");
  if (!sizes.empty() && sizes.size() != 3)
    throw UsageError(formatted("M, N and K are three numbers, got {}: {}", sizes.size(), joined(sizes, " ")));
  if (!sizes.empty())
    options.shapes = {{parse_size(sizes[0], "M"), parse_size(sizes[1], "N"), parse_size(sizes[2], "K")}};
  else
    options.shapes = parse_shapes(!shapes.empty() ? shapes : on_simulator() ? "256x256x256" : "4096x4096x4096");
  for (const Shape& shape : options.shapes)
    if (static_cast<long long>(options.groups) * std::max(shape.n, shape.k) > 2'000'000'000)
      throw UsageError(formatted("--groups: B of all groups may have 2000000000 rows, got {} groups of {}",
                                 options.groups, shape.str()));
  options.shapes_are_explicit = shapes.empty() || shapes.find_first_not_of("0123456789x,") == std::string::npos;
  if (on_simulator()) {
    options.check_only = true;
    std::vector<std::string> vain;
    for (const char* option : {"--l2", "--protocol", "--rounds", "--sittings", "--samples-csv", "--ceilings", "--tune"})
      if (app.count(option)) vain.emplace_back(option);
    if (!vain.empty()) print(stderr, "the simulator times nothing: without effect are {}\n", joined(vain, ", "));
    options.samples_csv.clear();
    options.tune = false;
    options.sittings = 1;
    options.until_sitting = 0;
  }
  return options;
}

}  // namespace ladder
