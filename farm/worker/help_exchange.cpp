#include "farm/worker/help_exchange.hpp"

#include <algorithm>
#include <utility>

#include "farm/worker/worker.hpp"

namespace manyworlds::farm {

namespace {
// One that is computed and one that is on its way, so that nobody waits for the way.
constexpr std::size_t kQuestionsPerHelper = 2;
constexpr std::size_t kMaxWaiting = 64;
}  // namespace

void HelpExchange::set_helpers(const std::vector<std::uint32_t>& ranks) {
  std::map<int, std::size_t> helpers;
  for (const std::uint32_t rank : ranks) {
    const auto known = helpers_.find(static_cast<int>(rank));
    helpers.emplace(static_cast<int>(rank), known == helpers_.end() ? 0 : known->second);
  }
  if (helpers == helpers_) return;
  helpers_ = std::move(helpers);
  allow();
}

void HelpExchange::allow() {
  simulator_.allow_questions(kQuestionsPerHelper * helpers_.size());
}

void HelpExchange::asks(std::uint64_t number, const std::string& question, std::int64_t now_ms) {
  const auto least = std::min_element(helpers_.begin(), helpers_.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  if (least == helpers_.end()) return simulator_.answer(number, "");
  ++least->second;
  asked_.emplace(++questions_sent_, Asked{least->first, number, now_ms});
  send(least->first, {.kind = MessageKind::question, .number = questions_sent_, .text = question});
}

void HelpExchange::hear(int from, const Message& message, bool is_busy) {
  if (message.kind == MessageKind::answer) {
    answered(from, message.number, message.text);
    if (message.text.empty()) give_up(from);  // it has work of its own
    return;
  }
  Question question{from, message.number, message.text};
  if (is_busy || waiting_.size() == kMaxWaiting) return refuse(question);
  if (answering_) {
    waiting_.push_back(std::move(question));
  } else {
    simulator_.help(++questions_given_, question.text);
    answering_ = std::move(question);
  }
}

void HelpExchange::answered(int helper, std::uint64_t number, const std::string& answer) {
  const auto found = asked_.find(number);
  if (found == asked_.end() || found->second.helper != helper) return;
  if (const auto known = helpers_.find(helper); known != helpers_.end() && known->second > 0) --known->second;
  const std::uint64_t simulators = found->second.number;
  asked_.erase(found);
  simulator_.answer(simulators, answer);
}

/// Asks this rank no more until it is named again, and expects no answer of it.
void HelpExchange::give_up(int helper) {
  if (helpers_.erase(helper) > 0) allow();
  std::vector<std::uint64_t> lost;
  for (const auto& [number, asked] : asked_)
    if (asked.helper == helper) lost.push_back(number);
  for (const std::uint64_t number : lost) answered(helper, number, "");
}

void HelpExchange::helped(std::uint64_t number, std::string answer, std::uint64_t us) {
  if (!answering_ || number != questions_given_) return;
  const Question question = *std::exchange(answering_, std::nullopt);
  help_.given += answer.empty() ? 0 : 1;
  help_.given_us += us;
  send(question.from, {.kind = MessageKind::answer, .number = question.number, .text = std::move(answer)});
  if (waiting_.empty()) return;
  answering_ = std::move(waiting_.front());
  waiting_.pop_front();
  simulator_.help(++questions_given_, answering_->text);
}

void HelpExchange::refuse(const Question& question) {
  send(question.from, {.kind = MessageKind::answer, .number = question.number});
}

void HelpExchange::refuse_waiting() {
  for (const Question& question : waiting_) refuse(question);
  waiting_.clear();
}

void HelpExchange::count_used(std::uint64_t answers_used) {
  help_.used += answers_used >= last_used_ ? answers_used - last_used_ : answers_used;
  last_used_ = answers_used;
}

void HelpExchange::tick(std::int64_t now_ms) {
  std::vector<int> silent;
  for (const auto& [number, asked] : asked_)
    if (now_ms - asked.at_ms >= answer_ms_) silent.push_back(asked.helper);
  for (const int helper : silent) give_up(helper);
}

}  // namespace manyworlds::farm
