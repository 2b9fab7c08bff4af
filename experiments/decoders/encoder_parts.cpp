#include "experiments/decoders/encoder_parts.hpp"

#include <fmt/ranges.h>

#include "experiments/decoders/decoder_parts.hpp"

namespace manyworlds::experiments::models {

using import::Node;

std::string_view purpose(ConfigReader& reader, const std::vector<std::string_view>& known) {
  const std::string& name = reader.config().architecture;
  for (const std::string_view one : known)
    if (name.ends_with(one) && (one != "Model" || !name.ends_with("LMHeadModel"))) return one;
  if (name.empty()) return known.front();
  reader.refuse(reader.find({"architectures"}),
                fmt::format("'architectures' has '{}': of this family only {} is modelled", name.substr(0, 60),
                            fmt::join(known, ", ")));
  return known.front();
}

std::int64_t class_count(ConfigReader& reader) {
  const FoundKey labels = reader.find({"id2label"});
  if (labels.is_set() && labels.value->kind == Node::Kind::mapping && !labels.value->entries.empty())
    return static_cast<std::int64_t>(labels.value->entries.size());
  const std::int64_t count = reader.integer({"num_labels", "_num_labels"}, 2);
  if (count < 1) reader.fail(reader.find({"num_labels", "_num_labels"}), "'num_labels' must be at least 1");
  return count;
}

void require_text(ConfigReader& reader, std::string_view key, std::string_view expected) {
  const std::string found = reader.text({key}, std::string(expected));
  if (found != expected)
    reader.refuse(reader.find({key}),
                  fmt::format("'{}' is '{}': only {} is modelled", key, found.substr(0, 40), expected));
}

void read_encoder(ConfigReader& reader, Keys dropout) {
  reader.take("layers", {"num_hidden_layers"});
  reader.take("hidden", {"hidden_size"});
  reader.take("heads", {"num_attention_heads"});
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::plain);
  reader.set("norm", "layer_norm");
  reader.set("position", "learned");
  reader.set("biases", true);
  reader.set("dropout", reader.real(dropout, 0) > 0, std::string(*dropout.begin()));
  if (reader.real({"attention_probs_dropout_prob", "attention_dropout"}, 0) > 0)
    reader.note(reader.find({"attention_probs_dropout_prob", "attention_dropout"}).key,
                "attention kernels draw their masks anew and keep none");
}

}  // namespace manyworlds::experiments::models
