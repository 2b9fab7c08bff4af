#include "experiments/nccl_logs/pickle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <variant>

#include "core/base/error.hpp"
#include "experiments/nccl_logs/pickle_opcodes.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::nccl_logs {
namespace {

using core::InputError;
using nlohmann::json;

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxValues = 50'000'000;
constexpr std::uint32_t kMark = UINT32_MAX;  // on the stack, in place of a value

using Number = std::uint32_t;  // of a value, in the order of their creation
struct List {
  std::vector<Number> items;
};
struct Dictionary {
  std::vector<std::pair<Number, Number>> items;
};
using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Dictionary>;

/// The machine that a pickle is a program of, with values that may be referred to from several places.
class Machine {
 public:
  Machine(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  /// Runs the program; returns the number of its value.
  Number run() {
    while (true) {
      begun_ = at_;
      const auto opcode = static_cast<Opcode>(byte());
      if (opcode == Opcode::stop) {
        if (stack_.size() != 1) fail("ends with other than one value");
        return pop();
      }
      step(opcode);
    }
  }
  const Value& value(Number number) const { return values_[number]; }
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(fmt::format("{} at byte {}", what, begun_), name_);
  }

 private:
  void step(Opcode opcode) {
    switch (opcode) {
      case Opcode::proto:
        if (const std::uint8_t protocol = byte(); protocol < 2 || protocol > 5)
          fail(fmt::format("is a pickle of protocol {}, not of 2 to 5,", protocol));
        return;
      case Opcode::frame:
        take(8);
        return;
      case Opcode::mark:
        stack_.push_back(kMark);
        return;
      case Opcode::none:
        return push(std::monostate{});
      case Opcode::new_true:
        return push(true);
      case Opcode::new_false:
        return push(false);
      case Opcode::bin_int:
        return push(std::int64_t{static_cast<std::int32_t>(unsigned_of(take(4)))});
      case Opcode::bin_int1:
        return push(static_cast<std::int64_t>(unsigned_of(take(1))));
      case Opcode::bin_int2:
        return push(static_cast<std::int64_t>(unsigned_of(take(2))));
      case Opcode::long1:
        return push(signed_of(take(unsigned_of(take(1)))));
      case Opcode::long4:
        return push(signed_of(take(unsigned_of(take(4)))));
      case Opcode::bin_float:
        return push(std::bit_cast<double>(big_endian(take(8))));
      case Opcode::short_bin_unicode:
      case Opcode::short_bin_bytes:
        return push_text(1);
      case Opcode::bin_unicode:
      case Opcode::bin_bytes:
        return push_text(4);
      case Opcode::bin_unicode8:
      case Opcode::bin_bytes8:
        return push_text(8);
      default:
        return step_of_containers(opcode);
    }
  }

  void step_of_containers(Opcode opcode) {
    switch (opcode) {
      case Opcode::empty_list:
      case Opcode::empty_tuple:
        return push(List{});
      case Opcode::empty_dict:
        return push(Dictionary{});
      case Opcode::append: {
        const Number item = pop();
        return list().items.push_back(item);
      }
      case Opcode::appends: {
        const std::vector<Number> items = since_mark();
        std::vector<Number>& to = list().items;
        to.insert(to.end(), items.begin(), items.end());
        return;
      }
      case Opcode::set_item: {
        const Number value = pop(), key = pop();
        dictionary().items.emplace_back(key, value);
        return;
      }
      case Opcode::set_items: {
        const std::vector<Number> items = since_mark();
        if (items.size() % 2 != 0) fail("has a key without a value");
        Dictionary& to = dictionary();
        for (std::size_t i = 0; i < items.size(); i += 2) to.items.emplace_back(items[i], items[i + 1]);
        return;
      }
      case Opcode::tuple:
        return push(List{since_mark()});
      case Opcode::tuple1:
        return push_tuple(1);
      case Opcode::tuple2:
        return push_tuple(2);
      case Opcode::tuple3:
        return push_tuple(3);
      default:
        return step_of_memo(opcode);
    }
  }

  void step_of_memo(Opcode opcode) {
    switch (opcode) {
      case Opcode::bin_put:
        memo_[unsigned_of(take(1))] = top();
        return;
      case Opcode::long_bin_put:
        memo_[unsigned_of(take(4))] = top();
        return;
      case Opcode::memoize: {
        const std::uint64_t next = memo_.size();
        memo_[next] = top();
        return;
      }
      case Opcode::bin_get:
        return get(unsigned_of(take(1)));
      case Opcode::long_bin_get:
        return get(unsigned_of(take(4)));
      default:
        fail(fmt::format("has the opcode {}, which plain values do not need: it is not run,",
                         name_of_other(static_cast<std::uint8_t>(opcode))));
    }
  }

  std::uint8_t byte() { return static_cast<std::uint8_t>(take(1)[0]); }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) fail("is torn: it ends in an operation that begins");
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  /// Whole numbers are little-endian, doubles big-endian.
  static std::uint64_t unsigned_of(std::string_view bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<std::uint8_t>(bytes[i - 1]);
    return value;
  }
  static std::uint64_t big_endian(std::string_view bytes) {
    std::uint64_t value = 0;
    for (const char c : bytes) value = value << 8 | static_cast<std::uint8_t>(c);
    return value;
  }
  std::int64_t signed_of(std::string_view bytes) const {
    if (bytes.size() > 8) fail("has a whole number beyond 64 bits");
    if (bytes.empty()) return 0;
    std::uint64_t value = unsigned_of(bytes);
    if ((static_cast<std::uint8_t>(bytes.back()) & 0x80u) != 0 && bytes.size() < 8)
      value |= ~std::uint64_t{0} << (8 * bytes.size());
    return static_cast<std::int64_t>(value);
  }

  void push(Value value) {
    if (values_.size() >= kMaxValues) fail(fmt::format("has more than {} values", kMaxValues));
    stack_.push_back(static_cast<Number>(values_.size()));
    values_.push_back(std::move(value));
  }
  void push_text(std::uint64_t bytes_of_length) {
    const std::string_view text = take(unsigned_of(take(bytes_of_length)));
    if (import::valid_text_length(text) != text.size()) fail("has a text that is no UTF-8");
    push(std::string(text));
  }
  void push_tuple(std::size_t size) {
    List tuple;
    for (std::size_t i = 0; i < size; ++i) tuple.items.push_back(pop());
    std::reverse(tuple.items.begin(), tuple.items.end());
    push(std::move(tuple));
  }
  Number top() const {
    if (stack_.empty() || stack_.back() == kMark) fail("needs a value that is not there");
    return stack_.back();
  }
  Number pop() {
    const Number value = top();
    stack_.pop_back();
    return value;
  }
  std::vector<Number> since_mark() {
    const auto mark = std::find(stack_.rbegin(), stack_.rend(), kMark);
    if (mark == stack_.rend()) fail("needs a mark that is not there");
    const std::vector<Number> values(mark.base(), stack_.end());
    stack_.resize(stack_.size() - values.size() - 1);
    return values;
  }
  List& list() {
    auto* found = std::get_if<List>(&values_[top()]);
    if (found == nullptr) fail("appends to what is no list");
    return *found;
  }
  Dictionary& dictionary() {
    auto* found = std::get_if<Dictionary>(&values_[top()]);
    if (found == nullptr) fail("sets an item of what is no dictionary");
    return *found;
  }
  void get(std::uint64_t number) {
    const auto known = memo_.find(number);
    if (known == memo_.end()) fail(fmt::format("refers to value {}, which it has not stored,", number));
    stack_.push_back(known->second);
  }

  std::string_view bytes_;
  const std::string& name_;
  std::size_t at_ = 0, begun_ = 0;
  std::vector<Value> values_;
  std::vector<Number> stack_;
  std::unordered_map<std::uint64_t, Number> memo_;
};

/// Writes the values out as JSON.
class Expansion {
 public:
  Expansion(const Machine& machine, const std::vector<std::string>& left_out)
      : machine_(machine), left_out_(left_out) {}

  json of(Number number, std::size_t depth = 0) {
    if (depth > kMaxDepth) machine_.fail(fmt::format("is nested deeper than {} levels", kMaxDepth));
    if (++values_ > kMaxValues) machine_.fail(fmt::format("has more than {} values", kMaxValues));
    const Value& value = machine_.value(number);
    if (const auto* list = std::get_if<List>(&value)) {
      json array = json::array();
      for (const Number item : list->items) array.push_back(of(item, depth + 1));
      return array;
    }
    if (const auto* dictionary = std::get_if<Dictionary>(&value)) {
      json object = json::object();
      for (const auto& [key, item] : dictionary->items) {
        const std::string member = key_of(key);
        const bool stays = std::find(left_out_.begin(), left_out_.end(), member) == left_out_.end();
        object[member] = stays ? of(item, depth + 1) : json();
      }
      return object;
    }
    if (const auto* is = std::get_if<bool>(&value)) return *is;
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
    if (const auto* real = std::get_if<double>(&value)) return *real;
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    return {};
  }

 private:
  std::string key_of(Number number) const {
    const Value& key = machine_.value(number);
    if (const auto* text = std::get_if<std::string>(&key)) return *text;
    if (const auto* whole = std::get_if<std::int64_t>(&key)) return fmt::format("{}", *whole);
    machine_.fail("has a key that is neither a text nor a whole number");
  }

  const Machine& machine_;
  const std::vector<std::string>& left_out_;
  std::size_t values_ = 0;
};

}  // namespace

bool is_pickle(std::string_view bytes) {
  return bytes.size() > 1 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

json parse_pickle(std::string_view bytes, const std::string& name, const std::vector<std::string>& left_out) {
  if (!is_pickle(bytes)) throw InputError("is no pickle of protocol 2 to 5", name);
  Machine machine(bytes, name);
  const Number root = machine.run();
  return Expansion(machine, left_out).of(root);
}

}  // namespace manyworlds::experiments::nccl_logs
