#include "core/step/network/episode.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/step/layout/keys.hpp"
#include "core/step/layout/rank_layout.hpp"

namespace manyworlds::core::step {
namespace {

/// Returns the key of a log without entries.
sharing::Key key_of(const network::Transport& transport) {
  sharing::KeyWriter writer("empty episode");
  write_transport(writer, transport);
  return writer.finish();
}

sharing::Key key_of(const sharing::Key& before, const LogEntry& entry) {
  sharing::KeyWriter writer("episode");
  writer.key(before).integer(entry.at);
  writer.integer(static_cast<std::int64_t>(entry.joining.size()));
  for (const LogEntry::JoiningCollective& joining : entry.joining) {
    write_shape(writer, joining.shape);
    if (joining.dag->members != joining.shape.members) writer.text("members").integer(joining.dag->members);
    writer.integer(joining.group).integer(joining.place).integer(joining.connections);
    writer.integer(static_cast<std::int64_t>(joining.links.size()));
    for (const network::LinkSpec& link : joining.links) {
      writer.integer(link.bits_per_second).integer(link.latency_ps);
      writer.integer(link.leaves_gpu + 2 * link.enters_gpu + 4 * link.scale_up);
    }
    writer.integer(static_cast<std::int64_t>(joining.routes.size()));
    if (joining.order) writer.text("order").integer(*joining.order);
    for (const network::Route& route : joining.routes) {
      writer.integer(static_cast<std::int64_t>(route.size()));
      for (const std::uint32_t link : route) writer.integer(link);
    }
  }
  writer.integer(static_cast<std::int64_t>(entry.entries.size()));
  for (const auto& [collective, member] : entry.entries) writer.integer(collective).integer(member);
  if (entry.absorbed) {
    writer.text("absorbed").key(entry.absorbed->key).integer(entry.absorbed->shift);
    for (const auto& [group, position] : entry.absorbed->groups) writer.integer(group).integer(position);
  }
  return writer.finish();
}

}  // namespace

Episode::Episode(network::ComponentCache& cache) : traffic_(network::make_flows(cache)) {}

std::string Episode::text() const {
  return fmt::format("{} collectives entered {} times at {} instants", tie_order_.all().size(), entered_, instants_);
}

const network::Exit* Episode::exit(std::size_t index, Time limit) {
  MANYWORLDS_CHECK(index >= past_exits_, "exit {} of an episode that forgot {}", index, past_exits_);
  index -= past_exits_;
  while (exits_.size() <= index && traffic_.now() < limit) {
    traffic_.advance(limit, exits_);
    if (limit == kNever) break;  // simulated as far as possible without further entries
  }
  return exits_.size() > index && exits_[index].at <= limit ? &exits_[index] : nullptr;
}

void Episode::join(const LogEntry::JoiningCollective& joining) {
  for (const network::LinkSpec& link : joining.links) traffic_.add_link(link);
  if (joining.connections == connections_) connections_ = traffic_.add_routes(joining.routes) + 1;
  traffic_.add(joining.dag, joining.connections);
  const bool others_change = tie_order_.add(joining.group, joining.place);
  if (joining.order)
    traffic_.add_tie_order(*joining.order);
  else if (others_change)
    traffic_.set_tie_order(tie_order_.all());
  else
    traffic_.add_tie_order(tie_order_.all().back());
  open_members_ += joining.dag->members;
}

void Episode::reach(Time at) {
  while (traffic_.now() < at) traffic_.advance(at, exits_);
  MANYWORLDS_CHECK(now() == at, "an entry at {} joins an episode that has reached {}", at, now());
  const auto first = std::find_if(exits_.begin(), exits_.end(), [&](const auto& exit) { return exit.at >= at; });
  if (first != exits_.begin()) last_exit_ = std::prev(first)->at;
  past_exits_ += static_cast<std::size_t>(first - exits_.begin());
  exits_.erase(exits_.begin(), first);
}

void Episode::append(const LogEntry& entry, const sharing::Key& key) {
  reach(entry.at);
  for (const LogEntry::JoiningCollective& joining : entry.joining) join(joining);
  for (const auto& [collective, member] : entry.entries) traffic_.enter(collective, member);
  entered_ += entry.entries.size();
  ++instants_;
  is_begun_ = false;
  key_ = key;
}

void Episode::absorb(const LogEntry::Absorbed& how, Time at, Episode other, const sharing::Key& key) {
  reach(at);
  other.reach(at - how.shift);
  const auto first = static_cast<std::uint32_t>(tie_order_.all().size());
  tie_order_.absorb(other.tie_order_, how.groups);
  traffic_.absorb(std::move(other.traffic_), how.shift);
  traffic_.set_tie_order(tie_order_.all());
  connections_ += other.connections_;
  for (const network::Exit& exit : other.exits_)
    exits_.push_back({exit.at + how.shift, first + exit.collective, exit.member});
  std::sort(exits_.begin(), exits_.end());
  past_exits_ += other.past_exits_;
  last_exit_ = std::max(last_exit_, other.last_exit_ + how.shift);
  open_members_ += other.open_members_, entered_ += other.entered_, instants_ += other.instants_;
  is_begun_ = false;
  key_ = key;
}

EpisodeCache::EpisodeCache(network::ComponentCache& cache, bool share)
    : cache_(cache), share_(share), empty_log_key_(key_of(cache.transport())) {}

Episode EpisodeCache::replay(LogEntries log) {
  Episode episode(cache_);
  sharing::Key key = empty_log_key_;
  for (const auto& entry : log) {
    key = key_of(key, *entry);
    if (entry->absorbed)
      episode.absorb(*entry->absorbed, entry->at, replay(entry->absorbed->log), key);
    else
      episode.append(*entry, key);
  }
  return episode;
}

std::shared_ptr<Episode> EpisodeCache::own(std::shared_ptr<Episode> episode, LogEntries log, Time at) {
  // Another component with the same log has been simulated further already.
  if (episode->now() > at) return std::make_shared<Episode>(replay(log));
  if (episode.use_count() > 1) return std::make_shared<Episode>(*episode);
  episodes_.erase(episode->key());  // no other component holds it, so it is continued under its new key
  return episode;
}

std::shared_ptr<Episode> EpisodeCache::extend(std::shared_ptr<Episode> before, const Log& log,
                                              std::shared_ptr<Episode> absorbed) {
  const LogEntry& entry = *log.back();
  const sharing::Key key = key_of(before ? before->key() : empty_log_key_, entry);
  if (share_) {
    if (episodes_.size() > prune_at_) {
      std::erase_if(episodes_, [](const auto& item) { return item.second.expired(); });
      prune_at_ = 2 * episodes_.size() + 1'024;
    }
    if (auto found = episodes_[key].lock()) return found;
  }
  std::shared_ptr<Episode> episode = before ? own(std::move(before), LogEntries(log).first(log.size() - 1), entry.at)
                                            : std::make_shared<Episode>(cache_);
  if (entry.absorbed)
    episode->absorb(*entry.absorbed, entry.at,
                    std::move(*own(std::move(absorbed), entry.absorbed->log, entry.at - entry.absorbed->shift)), key);
  else
    episode->append(entry, key);
  if (share_) episodes_[key] = episode;
  return episode;
}

}  // namespace manyworlds::core::step
