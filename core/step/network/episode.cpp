#include "core/step/network/episode.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/step/world/layout.hpp"

namespace manyworlds::core::step {
namespace {

/// Of a log without entries.
sharing::Key key_of(const network::Transport& transport) {
  sharing::Writer writer("empty episode");
  write_transport(writer, transport);
  return writer.finish();
}

sharing::Key key_of(const sharing::Key& before, const LogEntry& entry) {
  sharing::Writer writer("episode");
  writer.key(before).integer(entry.at);
  writer.integer(static_cast<std::int64_t>(entry.joining.size()));
  for (const LogEntry::Joining& joining : entry.joining) {
    write_shape(writer, joining.shape);
    writer.integer(joining.group).integer(joining.place).integer(joining.connections);
    writer.integer(static_cast<std::int64_t>(joining.links.size()));
    for (const network::LinkSpec& link : joining.links) {
      writer.integer(link.bits_per_second).integer(link.latency_ps);
      writer.integer(link.leaves_gpu + 2 * link.enters_gpu + 4 * link.scale_up);
    }
    writer.integer(static_cast<std::int64_t>(joining.routes.size()));
    for (const network::Route& route : joining.routes) {
      writer.integer(static_cast<std::int64_t>(route.size()));
      for (const std::uint32_t link : route) writer.integer(link);
    }
  }
  writer.integer(static_cast<std::int64_t>(entry.entries.size()));
  for (const auto& [collective, member] : entry.entries) writer.integer(collective).integer(member);
  return writer.finish();
}

}  // namespace

Episode::Episode(network::Memo& memo) : traffic_(network::make_flows(memo)) {}

std::string Episode::text() const {
  return fmt::format("{} collectives entered {} times at {} instants", ranks_.all().size(), entered_, instants_);
}

const network::Exit* Episode::exit(std::size_t taken, Time limit) {
  MANYWORLDS_CHECK(taken >= past_exits_, "exit {} of an episode that forgot {}", taken, past_exits_);
  taken -= past_exits_;
  while (exits_.size() <= taken && traffic_.now() < limit) {
    traffic_.advance(limit, exits_);
    if (limit == kNever) break;  // as far as it goes without further entries
  }
  return exits_.size() > taken && exits_[taken].at <= limit ? &exits_[taken] : nullptr;
}

void Episode::join(const LogEntry::Joining& joining) {
  for (const network::LinkSpec& link : joining.links) traffic_.add_link(link);
  if (joining.connections == connections_) connections_ = traffic_.add_routes(joining.routes) + 1;
  traffic_.add(joining.dag, joining.connections);
  if (ranks_.add(joining.group, joining.place))
    traffic_.set_ranks(ranks_.all());
  else
    traffic_.add_rank(ranks_.all().back());
  open_members_ += joining.dag->members;
}

void Episode::append(const LogEntry& entry, const sharing::Key& key) {
  while (traffic_.now() < entry.at) traffic_.advance(entry.at, exits_);
  MANYWORLDS_CHECK(now() == entry.at, "an entry at {} joins an episode that has reached {}", entry.at, now());
  const auto first = std::find_if(exits_.begin(), exits_.end(), [&](const auto& exit) { return exit.at >= entry.at; });
  if (first != exits_.begin()) last_exit_ = std::prev(first)->at;
  past_exits_ += static_cast<std::size_t>(first - exits_.begin());
  exits_.erase(exits_.begin(), first);
  for (const LogEntry::Joining& joining : entry.joining) join(joining);
  for (const auto& [collective, member] : entry.entries) traffic_.enter(collective, member);
  entered_ += entry.entries.size();
  ++instants_;
  key_ = key;
}

Episodes::Episodes(network::Memo& memo, bool share) : memo_(memo), share_(share), empty_(key_of(memo.transport())) {}

std::shared_ptr<Episode> Episodes::extend(std::shared_ptr<Episode> before, const Log& log) {
  const LogEntry& entry = *log.back();
  const sharing::Key key = key_of(before ? before->key() : empty_, entry);
  if (share_) {
    if (known_.size() > sweep_at_) {
      std::erase_if(known_, [](const auto& item) { return item.second.expired(); });
      sweep_at_ = 2 * known_.size() + 1'024;
    }
    if (auto found = known_[key].lock()) return found;
  }
  std::shared_ptr<Episode> made;
  if (!before) {
    made = std::make_shared<Episode>(memo_);
  } else if (before->now() <= entry.at) {
    if (before.use_count() == 1) {
      known_.erase(before->key());  // nobody else holds it: it goes on under its new name
      made = std::move(before);
    } else {
      made = std::make_shared<Episode>(*before);
    }
  } else {
    // A twin of this component has gone further already: play the log again, from memory for the most part.
    made = std::make_shared<Episode>(memo_);
    sharing::Key replayed = empty_;
    for (std::size_t i = 0; i + 1 < log.size(); ++i) made->append(*log[i], replayed = key_of(replayed, *log[i]));
  }
  made->append(entry, key);
  if (share_) known_[key] = made;
  return made;
}

}  // namespace manyworlds::core::step
