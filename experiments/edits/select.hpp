// Which operations of a program a selection means.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/edits/edit.hpp"

namespace manyworlds::experiments::edits {

/// Returns whether a text is of a pattern, in which * is any text and ? any character.
bool matches(std::string_view pattern, std::string_view text);

/// Returns what the patterns of selections are compared with; empty for an operation that has no such thing.
std::string_view kind_text(const programs::StreamPrograms& programs, const programs::StreamOp& op);
std::string_view dimension_of(const programs::StreamPrograms& programs, const programs::StreamOp& op);
std::string_view part_of(const programs::StreamOp& op);
std::string product_text(const programs::StreamOp& op);  // of a matrix product, m,n,k,batch

/// Returns the operations of program `number` that are selected, ascending; ranks are not looked at.
std::vector<std::uint32_t> selected(const programs::StreamPrograms& programs, std::size_t number,
                                    const Selection& selection);

/// Makes programs of their own for the ranks of a selection, where these share one with others. Returns the numbers of
/// all programs that such ranks run, ascending. Throws core::InputError for ranks that there are not.
std::vector<std::size_t> separate(programs::StreamPrograms& programs, const Selection& selection);

}  // namespace manyworlds::experiments::edits
