#include "ptx/parser.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <tuple>

#include "ptx/layout.h"
#include "ptx/lexer.h"
#include "ptx/names.h"
#include "ptx/scope.h"

namespace sim::ptx {
namespace {

// Limits: a text that asks for more is damaged.
constexpr uint64_t max_registers = 1 << 20;
constexpr uint64_t max_variable_bytes = uint64_t{1} << 40;
constexpr uint64_t max_initial_bytes = uint64_t{1} << 28;

class Parser {
 public:
  explicit Parser(std::string_view text)
      : text_(std::make_shared<const std::string>(text)), lexer_(*text_), token_(lexer_.next()) {
    module_.text = text_;
  }

  Module run();

 private:
  // Tokens
  [[noreturn]] void fail(const std::string& message) const { throw PtxError(token_.line, message); }
  [[noreturn]] void fail_expected(const std::string& what) const;
  [[noreturn]] void unsupported(const std::string& what) const {
    throw PtxError(token_.line, what + " is not supported", Fault::unsupported);
  }
  Token take();
  bool accept(char c);
  bool accept_directive(std::string_view name);
  void expect(char c);
  std::string_view expect_identifier(const char* what);
  uint64_t expect_integer(const char* what);
  uint32_t expect_count(const char* what);

  // Module ("Directives")
  void parse_version();
  void parse_target();
  void parse_file();
  void skip_section();
  void parse_module_statement();
  void skip_module_statement(const PtxError& reason);
  void parse_module_variable(StateSpace space, bool is_extern);

  // Functions
  void parse_function(bool is_entry, bool is_extern);
  std::vector<Variable> parse_parameters(const char* what);
  bool parse_performance_directive(Function& function);
  void parse_body();
  void refuse_body(const PtxError& reason);
  void open_scope();
  void close_scope();
  void parse_body_directive();
  void parse_registers();
  void parse_loc();
  void parse_prototype(std::string_view name);
  void parse_branch_targets(std::string_view name);
  void declare_label(std::string_view name);

  // Variables
  Variable parse_variable(StateSpace space, bool is_extern, std::string_view* declared = nullptr);
  void parse_initialiser(Variable& variable);
  void parse_initial_element(Variable& variable, uint64_t position);

  // Instructions
  void parse_instruction();
  void parse_call(Instruction& instruction);
  Operand parse_operand();
  Operand parse_simple_operand();
  Operand parse_number(bool negative);
  Operand parse_name(bool wants_label);
  Operand parse_vector();
  Operand parse_list();
  Operand parse_address();
  int64_t parse_offset();

  std::optional<Named> find(std::string_view name) const;
  [[noreturn]] void fail_undeclared(std::string_view name, uint32_t line, const std::string& what) const;
  void declare(std::string_view name, Named named, uint32_t line);
  Function& function() { return *function_; }

  std::shared_ptr<const std::string> text_;
  Lexer lexer_;
  Token token_;
  Module module_;

  std::unordered_map<std::string_view, Named> globals_;
  std::unordered_map<std::string_view, std::string>
      skipped_;                   ///< names that the module declares in a way that is unknown: why
  Function* function_ = nullptr;  ///< whose body is being read
  std::vector<Scope> scopes_;     ///< of that body, the innermost last
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, int32_t> last_location_;
  int32_t location_ = -1;       ///< Function::locations: the last .loc
  uint32_t operand_ = 0;        ///< of the instruction that is being read
  uint64_t initial_bytes_ = 0;  ///< of all initialised variables
  bool in_signature_ = false;   ///< of a function or prototype: its parameters' names mean nothing here
};

// Tokens ---------------------------------------------------------------------------------------------------------------

void Parser::fail_expected(const std::string& what) const {
  fail("expected " + what + ", found " +
       (token_.kind == Token::Kind::end         ? "the end of the text"
        : token_.kind == Token::Kind::directive ? "\"." + std::string(token_.text) + "\""
                                                : "\"" + std::string(token_.text) + "\""));
}

Token Parser::take() {
  const Token taken = token_;
  token_ = lexer_.next();
  return taken;
}

bool Parser::accept(char c) {
  if (!token_.is(c)) return false;
  take();
  return true;
}

bool Parser::accept_directive(std::string_view name) {
  if (!token_.is_directive(name)) return false;
  take();
  return true;
}

void Parser::expect(char c) {
  if (!accept(c)) fail_expected(std::string("\"") + c + "\"");
}

std::string_view Parser::expect_identifier(const char* what) {
  if (token_.kind != Token::Kind::identifier) fail_expected(what);
  return take().text;
}

uint64_t Parser::expect_integer(const char* what) {
  if (token_.kind != Token::Kind::integer) fail_expected(what);
  return take().bits;
}

uint32_t Parser::expect_count(const char* what) {
  if (token_.kind == Token::Kind::integer && token_.bits > INT32_MAX) fail_expected(std::string(what) + " below 2^31");
  return static_cast<uint32_t>(expect_integer(what));
}

// Module ---------------------------------------------------------------------------------------------------------------

Module Parser::run() {
  if (!token_.is_directive("version")) fail_expected(".version");
  parse_version();
  if (!token_.is_directive("target")) fail_expected(".target");
  parse_target();
  while (token_.kind != Token::Kind::end) {
    const auto start = std::pair(lexer_, token_);
    try {
      parse_module_statement();
    } catch (const PtxError& error) {
      if (error.fault != Fault::unsupported) throw;
      std::tie(lexer_, token_) = start;
      skip_module_statement(error);
    }
  }
  lay_out(module_);
  return std::move(module_);
}

void Parser::parse_version() {
  take();
  const std::string_view version = token_.text;
  const size_t dot = version.find('.');
  if (token_.kind != Token::Kind::float64 || dot == version.npos || version.size() > 5 ||
      version.find_first_not_of("0123456789.") != version.npos)
    fail_expected("a version, as in 9.0");
  for (const char c : version.substr(0, dot)) module_.version_major = module_.version_major * 10 + uint32_t(c - '0');
  for (const char c : version.substr(dot + 1)) module_.version_minor = module_.version_minor * 10 + uint32_t(c - '0');
  take();
}

void Parser::parse_target() {
  take();
  module_.target = expect_identifier("a target, as in sm_90a");
  while (accept(',')) expect_identifier("a target option, as in debug");
}

void Parser::parse_file() {
  const uint32_t number = expect_count("the number of a file");
  if (token_.kind != Token::Kind::string) fail_expected("the path of the file in quotes");
  module_.files[number] = take().text;
  // The file's time stamp and size.
  for (int i = 0; i < 2 && accept(','); ++i) expect_integer("a number");
}

// .section holds DWARF tables: nothing that a kernel executes.
void Parser::skip_section() {
  const uint32_t line = token_.line;
  while (token_.kind != Token::Kind::end && !token_.is('{')) take();
  expect('{');
  while (!token_.is('}')) {
    if (token_.kind == Token::Kind::end) fail("expected the \"}\" of the section in line " + std::to_string(line));
    take();
  }
  take();
}

std::optional<StateSpace> space_named(std::string_view name) {
  if (name == "global") return StateSpace::global;
  if (name == "const") return StateSpace::constant;
  if (name == "shared") return StateSpace::shared;
  if (name == "local") return StateSpace::local;
  if (name == "param") return StateSpace::param;
  return std::nullopt;
}

void Parser::parse_module_statement() {
  if (token_.kind != Token::Kind::directive) fail_expected("a directive, as in .entry");
  bool is_extern = false;
  for (;;) {
    if (accept_directive("extern"))
      is_extern = true;
    else if (!accept_directive("visible") && !accept_directive("weak") && !accept_directive("common"))
      break;
  }
  if (token_.kind != Token::Kind::directive) fail_expected("a directive, as in .entry");
  const Token directive = take();
  if (directive.text == "address_size") {
    module_.address_size = expect_count("64");
    if (module_.address_size != 64)
      throw PtxError(directive.line, "only .address_size 64 is supported", Fault::unsupported);
  } else if (directive.text == "file") {
    parse_file();
  } else if (directive.text == "section") {
    skip_section();
  } else if (directive.text == "pragma") {
    if (token_.kind != Token::Kind::string) fail_expected("a string");
    take();
    expect(';');
  } else if (directive.text == "entry" || directive.text == "func") {
    parse_function(directive.text == "entry", is_extern);
  } else if (const auto space = space_named(directive.text);
             space && *space != StateSpace::param && *space != StateSpace::local) {
    parse_module_variable(*space, is_extern);
  } else {
    throw PtxError(directive.line, "unknown directive ." + std::string(directive.text), Fault::unsupported);
  }
}

// A statement that this parser does not know: to its ";", or the end of its braces. What it declares is refused where it is used.
void Parser::skip_module_statement(const PtxError& reason) {
  int depth = 0;
  do {
    if (token_.kind == Token::Kind::end || token_.is_directive("entry") || token_.is_directive("func")) throw reason;
    if (token_.is('{')) ++depth;
    if (token_.is('}')) --depth;
    if (token_.kind == Token::Kind::identifier && !globals_.count(token_.text))
      skipped_.emplace(token_.text, reason.what());
    const bool last = depth == 0 && (token_.is(';') || token_.is('}'));
    take();
    if (last) {
      if (token_.is(';')) take();
      return;
    }
  } while (depth >= 0);
  throw reason;
}

void Parser::parse_module_variable(StateSpace space, bool is_extern) {
  std::string_view name;
  Variable variable = parse_variable(space, is_extern, &name);
  expect(';');
  const auto known = globals_.find(name);
  if (known == globals_.end()) {
    declare(name, Symbol{Symbol::Kind::module_variable, static_cast<uint32_t>(module_.variables.size())},
            variable.line);
    module_.variables.push_back(std::move(variable));
    return;
  }
  // A variable may be declared as extern and also defined. It then has one place in the list.
  const Symbol* symbol = std::get_if<Symbol>(&known->second);
  if (!symbol || symbol->kind != Symbol::Kind::module_variable ||
      !(module_.variables[symbol->index].is_extern || variable.is_extern))
    throw PtxError(variable.line, "\"" + variable.name + "\" is declared twice");
  if (!variable.is_extern) module_.variables[symbol->index] = std::move(variable);
}

// Functions ------------------------------------------------------------------------------------------------------------

void Parser::parse_function(bool is_entry, bool is_extern) {
  Function parsed;
  parsed.is_entry = is_entry;
  parsed.line = token_.line;
  if (!is_entry && token_.is('(')) parsed.results = parse_parameters("a result");
  const std::string_view name = expect_identifier("the name of a function");
  parsed.name = name;
  if (token_.is('(')) parsed.parameters = parse_parameters("a parameter");
  parsed.parameter_bytes = lay_out(parsed.parameters);
  parsed.result_bytes = lay_out(parsed.results);
  while (parse_performance_directive(parsed)) {
  }
  parsed.is_declaration = is_extern || token_.is(';');
  if (parsed.is_declaration)
    expect(';');
  else if (!token_.is('{'))
    fail_expected("\"{\" or \";\"");

  // A declaration and its definition share one place in the list.
  uint32_t index = static_cast<uint32_t>(module_.functions.size());
  if (const auto known = globals_.find(name); known != globals_.end()) {
    const Symbol* symbol = std::get_if<Symbol>(&known->second);
    if (!symbol || symbol->kind != Symbol::Kind::function)
      throw PtxError(parsed.line, "\"" + parsed.name + "\" is declared twice");
    index = symbol->index;
    if (parsed.is_declaration) return;
    if (!module_.functions[index].is_declaration)
      throw PtxError(parsed.line, "\"" + parsed.name + "\" is defined twice");
    module_.functions[index] = std::move(parsed);
  } else {
    module_.functions.push_back(std::move(parsed));
    globals_.emplace(name, Symbol{Symbol::Kind::function, index});
  }
  if (module_.functions[index].is_declaration) return;
  function_ = &module_.functions[index];
  const auto start = std::pair(lexer_, token_);
  try {
    parse_body();
  } catch (const PtxError& error) {
    std::tie(lexer_, token_) = start;
    refuse_body(error);
  }
  function_ = nullptr;
}

// A body that this parser cannot read refuses its function alone: to the end of its braces.
void Parser::refuse_body(const PtxError& reason) {
  int depth = 0;
  do {
    if (token_.kind == Token::Kind::end) throw reason;
    if (token_.is('{')) ++depth;
    if (token_.is('}')) --depth;
    take();
  } while (depth);
  scopes_.clear();
  in_signature_ = false;
  Function refused;
  refused.refused = function().refused.empty() ? reason.what() : function().refused;
  refused.name = function().name;
  refused.is_entry = function().is_entry;
  refused.line = function().line;
  refused.parameters = function().parameters;
  refused.parameter_bytes = function().parameter_bytes;
  refused.results = function().results;
  refused.result_bytes = function().result_bytes;
  function() = std::move(refused);
}

// ( .param .u64 a, .param .align 4 .b8 b[20] )
std::vector<Variable> Parser::parse_parameters(const char* what) {
  std::vector<Variable> parameters;
  in_signature_ = true;
  expect('(');
  while (!token_.is(')')) {
    if (!parameters.empty()) expect(',');
    if (!accept_directive("param")) fail_expected(std::string("\".param\" of ") + what);
    parameters.push_back(parse_variable(StateSpace::param, false));
  }
  expect(')');
  in_signature_ = false;
  return parameters;
}

bool Parser::parse_performance_directive(Function& parsed) {
  if (token_.kind != Token::Kind::directive) return false;
  const auto triple = [&](std::array<uint32_t, 3>& values) {
    values = {1, 1, 1};
    for (size_t i = 0; i < 3; ++i) {
      values[i] = expect_count("a number of threads or blocks");
      if (!accept(',')) break;
    }
  };
  const Token directive = take();
  if (directive.text == "maxntid")
    triple(parsed.maxntid);
  else if (directive.text == "reqntid")
    triple(parsed.reqntid);
  else if (directive.text == "reqnctapercluster")
    triple(parsed.reqnctapercluster);
  else if (directive.text == "minnctapersm" || directive.text == "maxnctapersm")
    parsed.minnctapersm = expect_count("a number of blocks");
  else if (directive.text == "maxnreg")
    parsed.maxnreg = expect_count("a number of registers");
  else if (directive.text == "maxclusterrank")
    parsed.maxclusterrank = expect_count("a number of blocks");
  else if (directive.text == "explicitcluster")
    parsed.explicitcluster = true;
  else if (directive.text == "pragma") {
    if (token_.kind != Token::Kind::string) fail_expected("a string");
    take();
    expect(';');
  } else if (directive.text != "noreturn") {
    const PtxError unknown(directive.line, "unknown directive ." + std::string(directive.text), Fault::unsupported);
    parsed.refused = unknown.what();
    while (token_.kind != Token::Kind::directive && token_.kind != Token::Kind::end && !token_.is('{') &&
           !token_.is(';'))
      take();
  }
  return true;
}

void Parser::parse_body() {
  last_location_.clear();
  location_ = -1;
  const uint32_t opened = token_.line;
  expect('{');
  open_scope();
  // The names of parameters belong to the outermost scope.
  for (uint32_t i = 0; i < function().parameters.size(); ++i)
    if (function().parameters[i].name != "_")
      scopes_.back().names.emplace(function().parameters[i].name, Symbol{Symbol::Kind::parameter, i});
  for (uint32_t i = 0; i < function().results.size(); ++i)
    if (function().results[i].name != "_")
      scopes_.back().names.emplace(function().results[i].name, Symbol{Symbol::Kind::result, i});
  while (!scopes_.empty()) {
    if (token_.kind == Token::Kind::end)
      fail("expected the \"}\" of \"" + function().name + "\", whose body starts in line " + std::to_string(opened) +
           "; found the end of the text");
    if (accept('{'))
      open_scope();
    else if (accept('}'))
      close_scope();
    else if (accept(';')) {  // an empty statement
    } else if (token_.kind == Token::Kind::directive)
      parse_body_directive();
    else
      parse_instruction();
  }
}

void Parser::open_scope() {
  const uint64_t used = scopes_.empty() ? 0 : scopes_.back().call_param_bytes;
  scopes_.emplace_back().call_param_bytes = used;
}

// All labels of this block are known now. Uses of them are resolved; the other uses go to the enclosing block.
void Parser::close_scope() {
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  for (const PendingLabel& pending : scope.pending) {
    const auto label = scope.labels.find(pending.name);
    if (label == scope.labels.end()) {
      if (scopes_.empty()) fail_undeclared(pending.name, pending.line, "is not declared");
      scopes_.back().pending.push_back(pending);
    } else if (pending.is_branch_target) {
      function().branch_targets[pending.instruction][pending.operand] = label->second;
    } else {
      function().instructions[pending.instruction].operands[pending.operand].index = label->second;
    }
  }
}

void Parser::parse_body_directive() {
  if (accept_directive("reg")) return parse_registers();
  if (accept_directive("loc")) return parse_loc();
  if (accept_directive("pragma")) {
    if (token_.kind != Token::Kind::string) fail_expected("a string");
    take();
    return expect(';');
  }
  bool is_extern = accept_directive("extern");
  const auto space = token_.kind == Token::Kind::directive ? space_named(token_.text) : std::nullopt;
  if (!space) fail_expected("a variable, a directive or an instruction");
  take();
  Variable variable = parse_variable(*space, is_extern);
  expect(';');
  Function& f = function();
  if (variable.space == StateSpace::param) {
    Scope& scope = scopes_.back();
    variable.offset = round_up(scope.call_param_bytes, variable.alignment);
    scope.call_param_bytes = variable.offset + variable.size;
    f.call_param_bytes = std::max(f.call_param_bytes, scope.call_param_bytes);
  } else if (variable.space == StateSpace::local) {
    variable.offset = round_up(f.local_bytes, variable.alignment);
    f.local_bytes = variable.offset + variable.size;
  } else if (variable.space != StateSpace::shared) {
    throw PtxError(variable.line,
                   "a ." + std::string(*space == StateSpace::global ? "global" : "const") +
                       " variable inside a function is not supported",
                   Fault::unsupported);
  }
  f.variables.push_back(std::move(variable));
}

// .reg .b32 %r<40>, t, u;
void Parser::parse_registers() {
  const auto type = token_.kind == Token::Kind::directive ? type_named(token_.text) : std::nullopt;
  if (!type) fail_expected("the type of a register");
  take();
  auto& registers = function().registers;
  do {
    const uint32_t line = token_.line;
    const std::string_view name = expect_identifier("the name of a register");
    const uint32_t first = static_cast<uint32_t>(registers.size());
    if (accept('<')) {
      const uint32_t count = expect_count("a number of registers");
      expect('>');
      if (first + count > max_registers)
        throw PtxError(line, "more than " + std::to_string(max_registers) + " registers");
      for (uint32_t i = 0; i < count; ++i) registers.push_back({std::string(name) + std::to_string(i), *type});
      if (!scopes_.back().ranges.emplace(name, RegisterRange{first, count}).second)
        throw PtxError(line, "\"" + std::string(name) + "\" is declared twice");
    } else {
      if (first + 1 > max_registers) throw PtxError(line, "more than " + std::to_string(max_registers) + " registers");
      registers.push_back({std::string(name), *type});
      declare(name, RegisterId{first}, line);
    }
  } while (accept(','));
  expect(';');
}

// .loc 2 52 61, function_name $L__info_string0, inlined_at 1 29 3
void Parser::parse_loc() {
  auto& locations = function().locations;
  const auto add = [&](int32_t inlined_at, const std::tuple<uint32_t, uint32_t, uint32_t>& place) {
    const auto [file, line, column] = place;
    locations.push_back({file, line, column, inlined_at});
    return last_location_[place] = static_cast<int32_t>(locations.size()) - 1;
  };
  const auto place = [&] {
    const uint32_t file = expect_count("the number of a file");
    const uint32_t line = expect_count("a line");
    return std::tuple(file, line, expect_count("a column"));
  };
  const auto here = place();
  int32_t inlined_at = -1;
  while (accept(',')) {
    const std::string_view attribute = expect_identifier("function_name or inlined_at");
    if (attribute == "function_name") {
      expect_identifier("a label");
      if (accept('+')) expect_integer("an offset");
    } else if (attribute == "inlined_at") {
      const auto outer = place();
      const auto known = last_location_.find(outer);
      inlined_at = known == last_location_.end() ? add(-1, outer) : known->second;
    } else {
      fail_expected("function_name or inlined_at before this");
    }
  }
  location_ = add(inlined_at, here);
}

// prototype_2 : .callprototype (.param .b32 _) _ (.param .b32 _);
void Parser::parse_prototype(std::string_view name) {
  Prototype prototype;
  prototype.name = name;
  const uint32_t line = token_.line;
  if (token_.is('(')) prototype.results = parse_parameters("a result");
  expect_identifier("_");
  if (token_.is('(')) prototype.parameters = parse_parameters("a parameter");
  accept_directive("noreturn");
  expect(';');
  lay_out(prototype.results);
  lay_out(prototype.parameters);
  declare(name, Symbol{Symbol::Kind::prototype, static_cast<uint32_t>(function().prototypes.size())}, line);
  function().prototypes.push_back(std::move(prototype));
}

// table: .branchtargets L1, L2, L3;
void Parser::parse_branch_targets(std::string_view name) {
  auto& lists = function().branch_targets;
  const uint32_t index = static_cast<uint32_t>(lists.size());
  declare(name, Symbol{Symbol::Kind::branch_targets, index}, token_.line);
  lists.emplace_back();
  do {
    const uint32_t line = token_.line;
    const std::string_view label = expect_identifier("a label");
    scopes_.back().pending.push_back({label, line, index, static_cast<uint32_t>(lists[index].size()), true});
    lists[index].push_back(0);
  } while (accept(','));
  expect(';');
}

void Parser::declare_label(std::string_view name) {
  const uint32_t target = static_cast<uint32_t>(function().instructions.size());
  if (!scopes_.back().labels.emplace(name, target).second)
    fail("the label \"" + std::string(name) + "\" is defined twice");
  function().labels.emplace(target, name);
}

std::optional<Named> Parser::find(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto found = scope->find(name)) return found;
  const auto found = globals_.find(name);
  return found == globals_.end() ? std::nullopt : std::optional(found->second);
}

/// A name of the system's that is new to this parser, or one whose declaration is.
void Parser::fail_undeclared(std::string_view name, uint32_t line, const std::string& what) const {
  const auto skipped = skipped_.find(name);
  throw PtxError(line,
                 "\"" + std::string(name) + "\" " + what + (skipped == skipped_.end() ? "" : ": " + skipped->second),
                 Fault::unsupported);
}

void Parser::declare(std::string_view name, Named named, uint32_t line) {
  auto& names = scopes_.empty() ? globals_ : scopes_.back().names;
  if (!names.emplace(name, named).second) throw PtxError(line, "\"" + std::string(name) + "\" is declared twice");
}

// Variables ------------------------------------------------------------------------------------------------------------

// After the state space: .align 16 .b8 name[64] = {0, 1}
// or, of a parameter:    .u64 .ptr .global .align 8 name
Variable Parser::parse_variable(StateSpace space, bool is_extern, std::string_view* declared) {
  Variable variable;
  variable.space = space;
  variable.is_extern = is_extern;
  variable.line = token_.line;
  uint32_t alignment = 0;
  while (token_.kind == Token::Kind::directive) {
    const Token directive = take();
    if (directive.text == "align") {
      const uint32_t value = expect_count("an alignment");
      if (!std::has_single_bit(value)) throw PtxError(directive.line, "the alignment is no power of two");
      if (variable.type == Type::none || space != StateSpace::param)
        alignment = value;  // after .ptr: of what it points to
    } else if (directive.text == "attribute") {
      expect('(');
      for (;;) {
        if (token_.kind != Token::Kind::directive) fail_expected("an attribute, as in .managed");
        const Token attribute = take();
        if (attribute.text == "managed")
          variable.is_managed = true;
        else
          throw PtxError(attribute.line, "unknown attribute ." + std::string(attribute.text), Fault::unsupported);
        if (!accept(',')) break;
      }
      expect(')');
    } else if (directive.text == "v2" || directive.text == "v4") {
      variable.vector = static_cast<uint32_t>(directive.text[1] - '0');
    } else if (const auto type = type_named(directive.text); type && variable.type == Type::none) {
      if (*type == Type::pred) throw PtxError(directive.line, "a predicate has no place in memory");
      variable.type = *type;
    } else if (space == StateSpace::param && variable.type != Type::none &&
               (directive.text == "ptr" || space_named(directive.text))) {
      // What a parameter points to: an optimiser's hint.
    } else {
      throw PtxError(directive.line, "unknown attribute of a variable: ." + std::string(directive.text),
                     Fault::unsupported);
    }
  }
  if (variable.type == Type::none) fail_expected("the type of a variable");
  const uint32_t element = size_of(variable.type) * variable.vector;
  variable.alignment = alignment ? alignment : element;

  const uint32_t name_line = token_.line;
  const std::string_view name = expect_identifier("the name of a variable");
  variable.name = name;
  variable.size = element;
  // "Array Declarations": a[2][3]; the first bound may be missing, of an extern array or before an initialiser.
  bool unbounded = false;
  while (accept('[')) {
    if (token_.is(']') && !variable.is_array) {
      unbounded = true;
    } else {
      const uint64_t bound = expect_integer("the size of an array");
      if (bound > max_variable_bytes / std::max<uint64_t>(variable.size, 1))
        throw PtxError(name_line, "an array of more than 2^40 bytes");
      variable.size *= bound;
    }
    expect(']');
    variable.is_array = true;
  }
  const uint64_t row = variable.size;
  if (unbounded) variable.size = 0;
  if (declared) *declared = name;
  if (function_ && !in_signature_)
    declare(name, Symbol{Symbol::Kind::function_variable, static_cast<uint32_t>(function_->variables.size())},
            name_line);
  if (accept('=')) {
    if (space != StateSpace::global && space != StateSpace::constant)
      fail("only .global and .const variables are initialised");
    if (unbounded) {
      if (!row) fail("the array \"" + variable.name + "\" has no size");
      variable.size = max_variable_bytes;
    }
    parse_initialiser(variable);
    if (unbounded) variable.size = (variable.initial.size() + row - 1) / row * row;
    initial_bytes_ += variable.size;
    if (initial_bytes_ > max_initial_bytes)
      throw PtxError(name_line, "initialised variables of more than 256 MiB are not supported", Fault::unsupported);
    variable.initial.resize(variable.size);  // the rest is zero
  } else if (unbounded && !is_extern) {
    throw PtxError(name_line, "the array \"" + variable.name + "\" has no size");
  }
  return variable;
}

void Parser::parse_initialiser(Variable& variable) {
  if (!accept('{')) return parse_initial_element(variable, 0);
  const uint64_t bytes = size_of(variable.type);
  uint64_t position = 0;
  while (!token_.is('}')) {
    if (position) expect(',');
    if (token_.is('{')) unsupported("an initialiser with nested braces");
    parse_initial_element(variable, position);
    position += bytes;
  }
  expect('}');
}

// A number, or the address of a variable or function: counter, generic(counter)+4.
void Parser::parse_initial_element(Variable& variable, uint64_t position) {
  const uint32_t bytes = size_of(variable.type);
  uint64_t bits = 0;
  if (position + bytes > variable.size) fail("more initial values than \"" + variable.name + "\" has elements");
  if (token_.kind == Token::Kind::identifier) {
    Relocation relocation;
    relocation.offset = position;
    relocation.bytes = bytes;
    if (token_.text == "generic") {
      take();
      expect('(');
      relocation.generic = true;
    }
    const std::string_view name = token_.text;
    const auto named = token_.kind == Token::Kind::identifier ? find(name) : std::nullopt;
    const Symbol* symbol = named ? std::get_if<Symbol>(&*named) : nullptr;
    if (!symbol || (symbol->kind != Symbol::Kind::module_variable && symbol->kind != Symbol::Kind::function))
      fail_expected("a number, a variable or a function");
    take();
    if (relocation.generic) expect(')');
    relocation.symbol = *symbol;
    relocation.addend = parse_offset();
    if (bytes < 4) fail("an address does not fit into " + std::to_string(bytes) + " bytes");
    variable.relocations.push_back(relocation);
  } else {
    const bool negative = accept('-');
    const Operand number = parse_number(negative);
    if (token_.is('(')) unsupported("part of an address in an initialiser, as in 0xFF(x),");
    const bool floating = number.kind != Operand::Kind::integer;
    bits = number.bits;
    if (variable.type == Type::f32 && number.kind == Operand::Kind::float64)
      bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(number.bits)));
    else if (variable.type == Type::f32 && !floating)
      bits = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int64_t>(bits)));
    else if (variable.type == Type::f64 && number.kind == Operand::Kind::float32)
      bits = std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(number.bits))));
    else if (variable.type == Type::f64 && !floating)
      bits = std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(bits)));
    else if (floating && variable.type != Type::f32 && variable.type != Type::f64)
      fail("a floating-point number for a variable of type ." + std::string(name_of(variable.type)));
  }
  variable.initial.resize(position + bytes);
  std::memcpy(variable.initial.data() + position, &bits, std::min<size_t>(bytes, sizeof bits));
}

// Instructions ---------------------------------------------------------------------------------------------------------

// L1: @!%p1 ld.global.f32 %f1, [%rd1+4];
void Parser::parse_instruction() {
  Instruction instruction;
  const Token first = token_;
  instruction.line = first.line;
  instruction.location = location_;
  if (accept('@')) {
    instruction.guard.negated = accept('!');
    const Operand predicate = parse_name(false);
    if (predicate.kind != Operand::Kind::reg || function().registers[predicate.index].type != Type::pred)
      throw PtxError(first.line, "expected a predicate register after \"@\"");
    instruction.guard.reg = predicate.index;
  }
  instruction.mnemonic = expect_identifier("an instruction, a label or \"}\"");
  if (instruction.guard.reg == Guard::always && token_.is(':')) {
    take();
    if (accept_directive("callprototype")) return parse_prototype(instruction.mnemonic);
    if (accept_directive("branchtargets")) return parse_branch_targets(instruction.mnemonic);
    return declare_label(instruction.mnemonic);
  }
  while (token_.kind == Token::Kind::directive) instruction.modifiers.push_back(take().text);

  auto& pending = scopes_.back().pending;
  const size_t waiting = pending.size();
  if (instruction.mnemonic == "call") {
    parse_call(instruction);
  } else if (!token_.is(';')) {
    const bool is_branch = instruction.mnemonic == "bra";
    do {
      operand_ = static_cast<uint32_t>(instruction.operands.size());
      instruction.operands.push_back(is_branch ? parse_name(true) : parse_operand());
    } while (accept(','));
  }
  for (size_t i = waiting; i < pending.size(); ++i)
    if (instruction.operands[pending[i].operand].kind != Operand::Kind::label)
      fail_undeclared(pending[i].name, pending[i].line, "is not declared");
  if (!token_.is(';')) fail_expected("\",\" or \";\"");
  instruction.text =
      std::string_view(first.text.data(), static_cast<size_t>(token_.text.data() - first.text.data()) + 1);
  take();
  function().instructions.push_back(std::move(instruction));
}

// call.uni (retval0), f, (param0, param1);      call (retval0), %rd1, (param0), prototype_0;
void Parser::parse_call(Instruction& instruction) {
  auto& operands = instruction.operands;
  Operand none;
  none.kind = Operand::Kind::list;
  const bool has_results = token_.is('(');
  operands.push_back(has_results ? parse_list() : none);
  if (has_results) expect(',');

  const uint32_t line = token_.line;
  operand_ = 1;
  operands.push_back(parse_name(false));
  const Operand callee = operands.back();
  const bool direct = callee.kind == Operand::Kind::symbol && callee.symbol.kind == Symbol::Kind::function;
  if (!direct && callee.kind != Operand::Kind::reg) throw PtxError(line, "expected a function or a register to call");

  operands.push_back(none);
  if (accept(',')) {
    if (token_.is('(')) {
      operands.back() = parse_list();
      if (!accept(',')) return;
    }
    operand_ = 3;
    operands.push_back(parse_name(false));
    if (operands.back().kind != Operand::Kind::symbol || operands.back().symbol.kind != Symbol::Kind::prototype)
      throw PtxError(line, "expected the prototype of an indirect call", Fault::unsupported);
  }
}

Operand Parser::parse_operand() {
  if (token_.is('{')) return parse_vector();
  if (token_.is('[')) return parse_address();
  Operand operand = parse_simple_operand();
  if (!accept('|')) return operand;
  Operand pair;
  pair.kind = Operand::Kind::pair;
  pair.elements.push_back(std::move(operand));
  pair.elements.push_back(parse_simple_operand());
  return pair;
}

Operand Parser::parse_simple_operand() {
  if (accept('!')) {
    Operand operand = parse_name(false);
    if (operand.kind != Operand::Kind::reg) fail("expected a predicate register after \"!\"");
    operand.negated = true;
    return operand;
  }
  const bool negative = accept('-');
  if (negative || token_.kind == Token::Kind::integer || token_.kind == Token::Kind::float32 ||
      token_.kind == Token::Kind::float64)
    return parse_number(negative);
  if (token_.kind != Token::Kind::identifier) fail_expected("an operand");
  return parse_name(false);
}

Operand Parser::parse_number(bool negative) {
  Operand operand;
  operand.bits = token_.bits;
  switch (token_.kind) {
    case Token::Kind::integer:
      operand.kind = Operand::Kind::integer;
      if (negative) operand.bits = 0 - operand.bits;
      break;
    case Token::Kind::float32:
      operand.kind = Operand::Kind::float32;
      if (negative) operand.bits ^= uint64_t{1} << 31;
      break;
    case Token::Kind::float64:
      operand.kind = Operand::Kind::float64;
      if (negative) operand.bits ^= uint64_t{1} << 63;
      break;
    default:
      fail_expected("a number");
  }
  take();
  return operand;
}

Operand Parser::parse_name(bool wants_label) {
  const Token token = token_;
  const std::string_view name = expect_identifier(wants_label ? "a label" : "a name");
  Operand operand;
  if (name == "_" && !wants_label) return operand;
  if (!wants_label) {
    if (const auto named = find(name)) {
      if (const RegisterId* reg = std::get_if<RegisterId>(&*named)) {
        operand.kind = Operand::Kind::reg;
        operand.index = reg->id;
        if (token_.kind == Token::Kind::directive) unsupported("an element of a vector register");
      } else {
        operand.kind = Operand::Kind::symbol;
        operand.symbol = std::get<Symbol>(*named);
        operand.offset = parse_offset();
      }
      return operand;
    }
    if (name[0] == '%' || name == "WARP_SZ") {
      std::string full(name);
      if (token_.kind == Token::Kind::directive && token_.text.size() == 1) full += "." + std::string(take().text);
      const auto special = special_named(full);
      if (!special) fail_undeclared(full, token.line, "is neither a declared nor a special register");
      operand.kind = Operand::Kind::special;
      operand.special = *special;
      return operand;
    }
  }
  operand.kind = Operand::Kind::label;
  scopes_.back().pending.push_back(
      {name, token.line, static_cast<uint32_t>(function().instructions.size()), operand_, false});
  return operand;
}

// {%f1, %f2, _, 0}
Operand Parser::parse_vector() {
  Operand vector;
  vector.kind = Operand::Kind::vector;
  expect('{');
  do vector.elements.push_back(parse_simple_operand());
  while (accept(','));
  expect('}');
  return vector;
}

// (param0, param1) of a call
Operand Parser::parse_list() {
  Operand list;
  list.kind = Operand::Kind::list;
  expect('(');
  if (accept(')')) return list;
  do {
    list.elements.push_back(parse_simple_operand());
    if (list.elements.back().kind == Operand::Kind::label) fail("the name before this is not declared");
  } while (accept(','));
  expect(')');
  return list;
}

// [%rd1+-16]  [table+8]  [64]  [%rd1, {%r1, %r2}]
Operand Parser::parse_address() {
  Operand address;
  address.kind = Operand::Kind::address;
  expect('[');
  if (token_.kind == Token::Kind::integer) {
    address.offset = static_cast<int64_t>(take().bits);
  } else {
    const Token token = token_;
    const Operand base = parse_name(false);
    if (base.kind == Operand::Kind::reg) {
      address.has_register = true;
      address.index = base.index;
      address.offset = parse_offset();
    } else if (base.kind == Operand::Kind::symbol) {
      address.symbol = base.symbol;
      address.offset = base.offset;
    } else {
      fail_undeclared(token.text, token.line, "is not declared; expected an address");
    }
  }
  while (accept(',')) address.elements.push_back(parse_vector());
  expect(']');
  return address;
}

// +4  -4  +-4
int64_t Parser::parse_offset() {
  if (!token_.is('+') && !token_.is('-')) return 0;
  bool negative = take().is('-');
  if (accept('-')) negative = !negative;
  const uint64_t value = expect_integer("an offset in bytes");
  return static_cast<int64_t>(negative ? 0 - value : value);
}

}  // namespace

Module parse(std::string_view text) { return Parser(text).run(); }

}  // namespace sim::ptx
