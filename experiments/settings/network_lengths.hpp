// Tokens of the networks of a model whose sequence is another than its description has. What the description tells of
// them is followed: strides, joined tokens, and how many numbers of one network a token of the next is made of.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/config/experiment_config.hpp"

namespace manyworlds::experiments {

/// Remembers that the architecture of a model describes it at the sequence that `settings` have now, if it has several
/// networks.
void remember_described_sequence(Settings& settings);

/// Forgets it, of an architecture that is given by itself.
void forget_described_sequence(Settings& settings);

/// Gives the networks the tokens that follow from model.sequence, if that is not the one that was remembered, which is
/// forgotten. Returns a note about those that keep theirs, or an empty text. Throws InputError, without a place, if
/// nothing tells what some of them have.
std::string fit_networks(Settings& settings);

/// The architecture `text` of a model of this width, which it describes at `described` tokens, at `sequence` tokens.
/// `note` is that of fit_networks(), and throws as it does; `name` is the model's in messages, and may be empty.
struct FittedNetworks {
  std::string text, note;
};
FittedNetworks fitted_networks(const std::string& text, const std::string& name, std::int64_t hidden,
                               std::int64_t described, std::int64_t sequence);

}  // namespace manyworlds::experiments
