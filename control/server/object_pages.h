#pragma once

#include <functional>
#include <string>
#include <vector>

#include "control/model/model.h"
#include "proto/codec.h"
#include "sluice/v1/cluster.pb.h"
#include "sluice/v1/objects.pb.h"

namespace sluice::server {

/// Which objects of a state; empty fields: all.
struct ObjectFilter {
  std::vector<std::string> kinds;  ///< Service, EndpointSlice, Node, ServiceCIDR
  std::string ns;                  ///< excludes objects without namespace
  std::string name;
};

/// Encodes the objects of `state` in pages of about 256 KiB, so that no message limit is met.
/// `page` returns false to stop.
void for_each_page(const model::ClusterState& state, const ObjectFilter& filter,
                   const std::function<bool(const v1::Objects&)>& page);

/// Decodes, validates and adds the objects of a page to `state`. An object that is there already,
/// or fails validation, is an error and left out.
void add_page(const v1::Objects& page, model::ClusterState& state,
              std::vector<codec::FieldError>& errors);

/// Adds what add_page() made of another page, as if that page had been added to `state` itself.
void merge_page(model::ClusterState&& page, std::vector<codec::FieldError>&& page_errors,
                model::ClusterState& state, std::vector<codec::FieldError>& errors);

/// As add_page() above, into a delta.
void add_page(const v1::Objects& page, model::Delta& delta, std::vector<codec::FieldError>& errors);

/// Where a deletion goes. @return what is wrong with it, or "".
std::string add_delete(const v1::ObjectRef& ref, model::Delta& delta);

}  // namespace sluice::server
