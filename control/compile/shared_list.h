#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::compile {

/// An immutable list that its copies share: what holds for a whole large cluster is handed on with
/// every small change. Thread: any.
template <class T>
class SharedList {
 public:
  using value_type = T;
  using const_iterator = typename std::vector<T>::const_iterator;
  using iterator = const_iterator;

  SharedList() {
    static const auto kNothing = std::make_shared<const std::vector<T>>();
    items_ = kNothing;
  }
  explicit SharedList(std::vector<T> items)
      : items_(std::make_shared<const std::vector<T>>(std::move(items))) {}

  [[nodiscard]] const_iterator begin() const { return items_->begin(); }
  [[nodiscard]] const_iterator end() const { return items_->end(); }
  [[nodiscard]] std::size_t size() const { return items_->size(); }
  [[nodiscard]] bool empty() const { return items_->empty(); }
  const T& operator[](std::size_t i) const { return (*items_)[i]; }
  [[nodiscard]] const std::vector<T>& items() const { return *items_; }
  /// The same list, not only an equal one.
  [[nodiscard]] bool shares(const SharedList& other) const { return items_ == other.items_; }
  bool operator==(const SharedList& other) const {
    return shares(other) || *items_ == *other.items_;
  }

 private:
  std::shared_ptr<const std::vector<T>> items_;  ///< never null
};

}  // namespace sluice::compile
