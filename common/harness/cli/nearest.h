// What a misspelt word was meant to be, for error messages. plots/errors.py has the same rule for Python.
#pragma once

#include <string>
#include <vector>

namespace ladder {

/// The end of a message: "; the nearest is X", where X is the candidate most like `word`; `otherwise` where none is like it.
/// Alike are two words that share 0.6 of their letters or more, in the same order; leading dashes do not count.
std::string hint(const std::string& word, const std::vector<std::string>& candidates,
                 const std::string& otherwise = "");

}  // namespace ladder
