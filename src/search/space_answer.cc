#include "search/space_answer.h"

#include <algorithm>
#include <string>

#include "learn/lm/prompt.h"

namespace tensorsmith::search {

namespace {

using learn::lm::NumberKind;
using learn::lm::WordKind;

// Indices of vocabulary amounts; learn/lm/answer.cc uses those below.
constexpr int kPart = 40, kParts = 41, kFollowsDraft = 42, kFollowsSimilar = 43;

std::string word_of(space::DecisionRole role) {
  return role == space::DecisionRole::kCacheWrite ? "role cache write"
                                                  : "role " + std::string(space::to_string(role));
}

}  // namespace

bool SpaceAnswer::take(int64_t value) {
  const size_t place = walk_.next().place;
  if (is_known(value)) {
    walk_.follow(*known_);
  } else {
    if (!walk_.take(value)) return false;
    known_ = nullptr;
  }
  follows_draft_ = follows_draft_ && context_->grammar.draft().decisions[place] == value;
  if (!context_->similar.empty())
    follows_similar_ = follows_similar_ && context_->similar.front().decisions[place] == value;
  return true;
}

void SpaceAnswer::describe(learn::lm::Positions& out) const {
  if (walk_.done()) return;
  const auto& next = walk_.next();
  const space::DecisionSlot& slot = context_->grammar.slot(next);
  out.add_word(WordKind::kSlot, word_of(slot.role));
  // A name like "conv2d.tile.oc" gives the operation, the kind of decision and the axis.
  std::string_view name = slot.name;
  for (int place = 0; !name.empty(); ++place) {
    const size_t dot = name.find('.');
    out.add_word(WordKind::kSlot,
                 std::to_string(place) + " " + std::string(learn::lm::without_number(name.substr(0, dot))));
    name = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
  }
  if (slot.kind == space::DecisionKind::kTileLengths) {
    out.add_number(NumberKind::kExtent, slot.extent);
    out.add_amount(kPart, static_cast<float>(next.part) / 2);
    out.add_amount(kParts, static_cast<float>(slot.parts) / 2);
    out.add_word(WordKind::kSlot, "part " + std::to_string(next.part) + " of " + std::to_string(slot.parts));
  } else {
    out.add_number(NumberKind::kCategories, slot.categories);
  }
  out.add_number(NumberKind::kDraft, context_->grammar.draft().decisions[next.place]);
  if (follows_draft_) out.add_amount(kFollowsDraft, 1);
  for (size_t i = 0; i < std::min<size_t>(2, context_->similar.size()); ++i)
    out.add_number(i == 0 ? NumberKind::kSimilar : NumberKind::kSimilar2,
                   context_->similar[i].decisions[next.place]);
  if (!context_->similar.empty() && follows_similar_) out.add_amount(kFollowsSimilar, 1);
}

std::vector<int64_t> SpaceAnswer::examples() const {
  std::vector<int64_t> values{walk_.candidate().decisions[walk_.next().place],
                              context_->grammar.draft().decisions[walk_.next().place]};
  for (const auto& candidate : context_->similar) values.push_back(candidate.decisions[walk_.next().place]);
  return values;
}

std::vector<int64_t> decisions_in_order(const space::SketchGrammar& grammar,
                                        const space::Candidate& candidate) {
  std::vector<int64_t> result;
  for (const auto& decision : grammar.decisions()) result.push_back(candidate.decisions[decision.place]);
  return result;
}

std::optional<space::Candidate> from_decisions(const space::SketchGrammar& grammar,
                                               const std::vector<int64_t>& decisions) {
  if (decisions.size() != grammar.decisions().size()) return std::nullopt;
  space::Candidate candidate;
  candidate.sketch = grammar.sketch();
  candidate.decisions.resize(decisions.size());
  for (size_t i = 0; i < decisions.size(); ++i)
    candidate.decisions[grammar.decisions()[i].place] = decisions[i];
  if (!grammar.space().check(candidate).ok()) return std::nullopt;
  return candidate;
}

}  // namespace tensorsmith::search
