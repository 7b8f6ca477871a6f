// Which words a map of fragments gives to mma.sync, beside those that mma.sync takes them for.
#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "common/layout.h"
#include "docs/exercises/explain.h"

using namespace ladder;

namespace {

#include "hole/fragments"

constexpr int LANES = 32;
using Places = std::vector<Coord>;  // one per lane
using Map = Coord (*)(int lane, int r);

struct Fragment {
  const char *name, *row, *col;  // what a Coord's two numbers are called
  int rows, cols, registers;
  Map yours, real;
};

Places places(Map map, int r) {
  Places found;
  for (int lane = 0; lane < LANES; ++lane) found.push_back(map(lane, r));
  return found;
}

std::set<std::pair<int, int>> as_set(const Places& places) {
  std::set<std::pair<int, int>> found;
  for (const auto [row, col] : places) found.insert({row, col});
  return found;
}

/// "row 3", "rows 0 to 7" or "rows 0, 2, 4".
std::string range(const char* what, const Places& places, int Coord::*number) {
  std::set<int> values;
  for (const Coord place : places) values.insert(place.*number);
  const int least = *values.begin(), most = *values.rbegin();
  std::ostringstream text;
  text << what << (values.size() > 1 ? "s " : " ") << least;
  if (values.size() > 2 && static_cast<int>(values.size()) == most - least + 1)
    text << " to " << most;
  else
    for (auto value = std::next(values.begin()); value != values.end(); ++value) text << ", " << *value;
  return text.str();
}

std::string box(const Fragment& f, const Places& places) {
  return range(f.row, places, &Coord::row) + ", " + range(f.col, places, &Coord::col);
}

std::string one(const Fragment& f, Coord place) { return box(f, {place}); }

/// The register whose places these are, lane by lane; -1 if none is.
int register_of(const Fragment& f, const Places& found) {
  for (int r = 0; r < f.registers; ++r)
    if (places(f.real, r) == found) return r;
  return -1;
}

void explain(const Fragment& f) {
  bool wrong = false;
  Places held;
  for (int r = 0; r < f.registers; ++r) {
    const Places yours = places(f.yours, r), real = places(f.real, r);
    held.insert(held.end(), yours.begin(), yours.end());
    if (yours == real) continue;
    wrong = true;
    const int lane = static_cast<int>(std::mismatch(yours.begin(), yours.end(), real.begin()).first - yours.begin());
    if (const int other = register_of(f, yours); other >= 0)
      finding(f.name, ", register ", r, ": this is the map of register ", other, ". For ", box(f, real),
              " mma.sync gets ", box(f, yours), ".");
    else if (as_set(yours).size() == 1)
      finding(f.name, ", register ", r, ": all lanes hold ", one(f, yours[0]), ". Together they should hold ",
              box(f, real), ".");
    else if (as_set(yours) == as_set(real))
      finding(f.name, ", register ", r, ": together the lanes hold the right places (", box(f, real),
              "), but each holds another one: lane ", lane, " holds ", one(f, yours[lane]), " where mma.sync takes ",
              one(f, real[lane]), " from it.");
    else
      finding(f.name, ", register ", r, ": lane ", lane, " holds ", one(f, yours[lane]), " where mma.sync takes ",
              one(f, real[lane]), " from it. Your lanes hold ", box(f, yours), "; it should be ", box(f, real), ".");
  }
  if (!wrong) return;
  Places outside, nowhere;
  const auto seen = as_set(held);
  for (const Coord place : held)
    if (place.row < 0 || place.row >= f.rows || place.col < 0 || place.col >= f.cols) outside.push_back(place);
  for (int row = 0; row < f.rows; ++row)
    for (int col = 0; col < f.cols; ++col)
      if (!seen.contains({row, col})) nowhere.push_back({row, col});
  if (!outside.empty())
    finding(f.name, " has ", f.rows, ' ', f.row, "s and ", f.cols, ' ', f.col, "s: there is no ", one(f, outside[0]),
            ".");
  if (nowhere.empty() || !outside.empty()) return;
  const auto count = [&](int Coord::*number) {
    std::set<int> values;
    for (const Coord place : nowhere) values.insert(place.*number);
    return values.size();
  };
  if (nowhere.size() == count(&Coord::row) * count(&Coord::col))
    finding("So no lane holds ", box(f, nowhere), " of ", f.name, " (chapter 10, The picture).");
  else
    finding("So ", nowhere.size(), " of the ", f.rows * f.cols, " places of ", f.name,
            " are in no lane (chapter 10, The picture).");
}

void explain_all() {
  explain({"A", "row", "word", 16, 8, 4, mma_a, ladder::mma_a});
  explain({"B", "column", "word", 8, 8, 2, mma_b, ladder::mma_b});
  explain({"C", "row", "column", 16, 8, 4, mma_c, ladder::mma_c});
}

}  // namespace

int main() { explain_all(); }
