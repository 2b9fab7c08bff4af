#include "experiments/kineto/parse_trace.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/error.hpp"
#include "experiments/kineto/mended_json.hpp"
#include "experiments/profiler_events/trace_builder.hpp"

namespace manyworlds::experiments::kineto {
namespace {

using core::InputError;
using nlohmann::json;

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxHeadValues = 4'000'000;

/// Builds one value of the document's head from the parser's events.
class HeadValue {
 public:
  explicit HeadValue(const std::string& file) : file_(&file) {}
  bool is_open() const { return !open_.empty(); }
  void key(const std::string& name) { key_ = name; }
  void begin(json value) { open_.push_back(add(std::move(value))); }
  /// Ends an object or a list; returns whether it was the whole value.
  bool end() {
    open_.pop_back();
    return open_.empty();
  }
  json* add(json value) {
    if (++values_ > kMaxHeadValues) throw InputError("its head has more than 4,000,000 values", *file_);
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& in = *open_.back();
    if (in.is_array()) {
      in.push_back(std::move(value));
      return &in.back();
    }
    return &(in[key_] = std::move(value));
  }
  const json& value() const { return root_; }

 private:
  const std::string* file_;
  json root_;
  std::vector<json*> open_;
  std::string key_;
  std::size_t values_ = 0;
};

/// Writes lists in a member of an event as they stand in the file, from the parser's events.
class ListText {
 public:
  explicit ListText(std::string& to) : to_(to) {}
  bool is_open() const { return open_ > 0; }
  void member(const std::string& name) {
    if (!to_.empty()) to_ += ',';
    to_ += json(name).dump() + ':';
  }
  void begin() {
    separate();
    to_ += '[';
    ++open_;
  }
  void end() {
    to_ += ']';
    --open_;
  }
  void number(std::string_view text) {
    separate();
    to_ += text;
  }
  void text(const std::string& text) {
    separate();
    to_ += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  }
  /// Takes what the lists are not looked at for.
  void other() { number("null"); }

 private:
  void separate() {
    if (!to_.empty() && to_.back() != '[' && to_.back() != ':') to_ += ',';
  }

  std::string& to_;
  std::size_t open_ = 0;
};

/// Takes the parser's events: those of the list `traceEvents`, or of a document that is a list, become trace events.
class Reader : public nlohmann::json_sax<json> {
 public:
  Reader(profiler::TraceBuilder& to, const std::string& file) : to_(to), file_(file), head_(file) {}

  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(std::int64_t value) override { return number(json(value), fmt::format_int(value).str()); }
  bool number_unsigned(std::uint64_t value) override { return number(json(value), fmt::format_int(value).str()); }
  bool number_float(double value, const std::string& text) override { return number(json(value), text); }
  bool string(std::string& text) override {
    if (head_.is_open()) {
      head_.add(text);
    } else if (is_in_inputs()) {
      inputs_.text(text);
    } else if (in_events()) {
      scalar(text);
    } else if (depth_ == 1 && is_object_) {
      to_.head(key_, json(text));
    }
    return true;
  }
  bool binary(json::binary_t&) override { return true; }

  bool start_object(std::size_t) override {
    if (inputs_.is_open()) {
      other();
      ++objects_;
    }
    open();
    if (head_.is_open()) {
      head_.begin(json::object());
    } else if (depth_ == 1) {
      is_object_ = true;
    } else if (is_event()) {
      event_.clear();
    } else if (depth_ == 2 && is_object_ && !in_events()) {
      begin_head(json::object());
    }
    return true;
  }
  bool key(std::string& name) override {
    if (head_.is_open()) {
      head_.key(name);
    } else if (is_event()) {
      member_ = profiler::event_member(name);
    } else if (is_arguments()) {
      argument_ = profiler::argument_member(name);
      if (argument_ == profiler::Member::inputs) name_ = name;
    } else if (depth_ == 1) {
      key_ = name;
    }
    return true;
  }
  bool end_object() override {
    if (objects_ > 0) --objects_;
    if (head_.is_open()) {
      if (head_.end()) to_.head(key_, head_.value());
    } else if (is_event()) {
      to_.add(event_);
    }
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    const bool is_of_inputs = is_in_inputs() || (is_arguments() && argument_ == profiler::Member::inputs);
    open();
    if (head_.is_open()) {
      head_.begin(json::array());
    } else if (is_of_inputs) {
      if (!inputs_.is_open()) inputs_.member(name_);
      inputs_.begin();
    } else if (!in_events()) {
      if (depth_ == 1 || (depth_ == 2 && is_object_ && key_ == "traceEvents")) {
        events_depth_ = depth_;
        has_events_ = true;
      } else if (depth_ == 2 && is_object_) {
        begin_head(json::array());
      }
    }
    return true;
  }
  bool end_array() override {
    if (head_.is_open()) {
      if (head_.end()) to_.head(key_, head_.value());
    } else if (is_in_inputs()) {
      inputs_.end();
    } else if (in_events() && depth_ == events_depth_) {
      events_depth_ = 0;
    }
    --depth_;
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string what = error.what();
    std::string place = fmt::format("byte {}", at);
    if (const std::size_t line = what.find("line "); line != std::string::npos)
      place += fmt::format(" ({})", what.substr(line, what.find(':', line) - line));
    if (what.find("unexpected end of input") != std::string::npos ||
        what.find("missing closing quote") != std::string::npos)
      throw InputError(fmt::format("is torn: its JSON ends at {} with brackets or texts still open{}", place,
                                   has_events_ ? "; copy the file again, or let the profiler finish it" : ""),
                       file_);
    const std::size_t reason = what.find("- ");
    throw InputError(
        fmt::format("is no JSON at {}: {}", place, reason == std::string::npos ? what : what.substr(reason + 2, 200)),
        file_);
  }

  bool has_events() const { return has_events_; }

 private:
  bool in_events() const { return events_depth_ > 0; }
  bool is_event() const { return in_events() && depth_ == events_depth_ + 1; }
  /// Whether the lists of an operator's inputs are open, and nothing else in them.
  bool is_in_inputs() const { return inputs_.is_open() && objects_ == 0; }
  bool is_arguments() const { return in_events() && depth_ == events_depth_ + 2 && member_ == profiler::Member::args; }

  void open() {
    if (++depth_ > kMaxDepth) throw InputError(fmt::format("is nested deeper than {} levels", kMaxDepth), file_);
  }
  void begin_head(json value) {
    head_ = HeadValue(file_);
    head_.begin(std::move(value));
  }
  bool other() {
    if (is_in_inputs()) inputs_.other();
    return true;
  }
  bool number(json value, const std::string& text) {
    if (head_.is_open())
      head_.add(std::move(value));
    else if (is_in_inputs())
      inputs_.number(text);
    else if (in_events())
      scalar(text);
    else if (depth_ == 1 && is_object_)
      to_.head(key_, value);
    return true;
  }
  void scalar(std::string_view text) {
    if (is_event())
      event_.set(member_, text);
    else if (is_arguments())
      event_.set(argument_, text);
    else if (depth_ == events_depth_ + 3 && member_ == profiler::Member::args)
      event_.add(argument_, text);
  }

  profiler::TraceBuilder& to_;
  const std::string& file_;
  profiler::TraceEvent event_;
  HeadValue head_;
  ListText inputs_{event_.inputs};
  std::size_t objects_ = 0;  // that are open in lists of inputs
  std::string key_, name_;   // of the document, and of the lists of inputs
  profiler::Member member_ = profiler::Member::unknown, argument_ = profiler::Member::unknown;
  std::size_t depth_ = 0, events_depth_ = 0;
  bool is_object_ = false, has_events_ = false;
};

}  // namespace

profiler::RankTrace parse_trace(std::istream& text, const std::string& name, const profiler::OperatorInputs* host) {
  profiler::TraceBuilder builder(name, host);
  Reader reader(builder, name);
  MendedStream mended(text);
  std::istream mended_text(&mended);
  json::sax_parse(mended_text, &reader);
  if (!reader.has_events())
    throw InputError("is no trace of a profiler: it has no 'traceEvents', and is no list of events", name);
  profiler::RankTrace trace = builder.finish();
  trace.mended_values = mended.mended().values, trace.mended_characters = mended.mended().characters;
  return trace;
}

}  // namespace manyworlds::experiments::kineto
