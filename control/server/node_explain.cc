// Node.Explain: puts together what compile::explain() says about a new flow, the worker that owns
// the flow and the connection that exists.
#include "control/compile/explain.h"

#include <optional>

#include "control/server/connection_row.h"
#include "control/server/flow_question.h"
#include "control/server/names.h"
#include "control/server/node_service.h"

namespace sluice::server {
namespace {

constexpr int kTries = 3;  // a state newer than the table is asked for again

void add_step(v1::ExplainResponse& response, const std::string& rule, const std::string& text) {
  auto& step = *response.add_steps();
  step.set_rule(rule);
  step.set_text(text);
}

void fill_endpoint(const compile::ExplainedEndpoint& from, v1::ExplainEndpoint& to) {
  to.set_address(core::to_string(from.address));
  to.set_port(from.port);
  to.set_candidate(from.candidate);
  to.set_masquerade(from.masquerade);
  to.set_mode(from.candidate ? std::string(mode_text(from.mode)) : "");
  to.set_rule(from.why.rule);
  to.set_reason(from.why.text);
}

void fill_explanation(const compile::Explanation& from, v1::ExplainResponse& to) {
  for (const core::Step& step : from.before) {
    add_step(to, step.rule, step.text);
  }
  for (const compile::ExplainedEndpoint& endpoint : from.endpoints) {
    add_step(to, endpoint.why.rule, endpoint.why.text);
    fill_endpoint(endpoint, *to.add_endpoints());
  }
  for (const core::Step& step : from.after) {
    add_step(to, step.rule, step.text);
  }
  const core::Decision& decision = from.decision;
  to.set_verdict(std::string(compile::name_of(decision.verdict)));
  to.set_summary(compile::verdict_text(from));
  to.set_affinity_seconds(decision.affinity_seconds);
  if (decision.service != nullptr) {
    to.set_service(decision.service->name);
    to.set_frontend(std::string(kind_text(decision.frontend)));
  }
}

/// Words for a connection that exists: it keeps what it has (M-8).
void describe_connection(const v1::ConnectionRow& row, const compile::Explanation& explanation,
                         v1::ExplainResponse& response) {
  const auto backend = core::parse_address(row.backend());
  const std::string to = core::to_string(backend.value_or(core::IpAddress{}),
                                         static_cast<std::uint16_t>(row.backend_port()));
  bool candidate = false;
  for (const auto& e : explanation.endpoints) {
    candidate = candidate || (e.candidate && backend == e.address && row.backend_port() == e.port);
  }
  add_step(response, "M-8",
           "the flow exists for " + std::to_string(row.age_ms() / 1000) + " s in state " +
               row.state() + " on worker " + std::to_string(row.worker()) + ": it stays on " + to +
               ", mode " + row.mode() +
               (candidate ? "" : ", where a new flow would not be sent any more"));
  response.set_summary("forward to " + to + ", mode " + row.mode() +
                       (row.source() == row.client() ? ", source kept" : ", source translated") +
                       ", as the connection that exists");
}

/// What the workers do with a source that the rules translate, when the host delivers: the host
/// takes no packet from its own address.
void keep_sources_of_host(const pipeline::WorkerView& view, const core::ForwardingTable& table,
                          compile::Explanation& explanation) {
  for (compile::ExplainedEndpoint& e : explanation.endpoints) {
    if (!e.candidate || e.mode != core::ForwardingMode::kFullNat ||
        !core::host_keeps_source(table, e.address.family(), view.host_delivers(e.address))) {
      continue;
    }
    e.masquerade = false;
    e.mode = core::ForwardingMode::kNat;
    explanation.after.push_back(
        {"P-9", core::to_string(e.address, e.port) +
                    " is delivered by this host, which takes no packet that comes from its own "
                    "address: without snat.addresses the source is kept after all, mode nat"});
  }
}

/// What comes from the wire with a Service's address as its source: the workers drop it before they
/// open a flow or refuse one.
void drop_martian(const pipeline::WorkerView& view, const core::Flow& flow,
                  compile::Explanation& explanation) {
  if (!core::drops_martian(explanation.decision, !flow.ingress.empty()) ||
      !view.is_service_address(flow.tuple.src)) {
    return;
  }
  explanation.decision.verdict = core::FlowVerdict::kDrop;
  explanation.after.push_back(
      {"rule_martian_source",
       core::to_string(flow.tuple.src) +
           " is an address of a Service, which no host out there has: what arrives from it by a "
           "port is dropped, whatever the rules say; the counter rule_martian_source grows"});
}

}  // namespace

/// The flow's own connection among those of its client. Errors: as dump_connections().
core::Result<std::optional<pipeline::ConnectionRow>> NodeService::find_connection(
    const core::FlowTuple& tuple) const {
  pipeline::ConnectionFilter filter;
  filter.client = tuple.src;
  filter.vip = tuple.dst;
  filter.vip_port = tuple.dport;
  filter.protocol = tuple.protocol;
  std::optional<pipeline::ConnectionRow> found;
  const auto dumped = view_->dump_connections(filter, [&](const pipeline::ConnectionRow& row) {
    if (row.flow == tuple) {
      found = row;
    }
    return !found;
  });
  if (!dumped) {
    return tl::make_unexpected(dumped.error());
  }
  return found;
}

grpc::Status NodeService::explain_on_workers(const core::FlowTuple& tuple,
                                             const core::ForwardingTable& table,
                                             const compile::Explanation& explanation,
                                             v1::ExplainResponse& response) {
  if (view_ == nullptr) {
    return grpc::Status::OK;
  }
  if (tuple.sport == 0) {
    add_step(response, "owner", "which worker depends on the source port, which was not given");
    return grpc::Status::OK;
  }
  if (const auto worker = view_->owner_of_client(tuple.src, tuple.sport)) {
    response.set_worker(*worker);
    add_step(
        response, "owner",
        "worker " + std::to_string(*worker) + " by " + core::to_string(tuple.src, tuple.sport));
  }
  const DumpSlot slot(dumps_, options_.max_dumps);
  if (!slot.got()) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED,
            std::to_string(options_.max_dumps) + " dumps are running already, the limit"};
  }
  const auto found = find_connection(tuple);
  if (!found) {
    return {grpc::StatusCode::INTERNAL, found.error().message};
  }
  if (*found) {
    fill_connection(**found, &table, *response.mutable_connection());
    describe_connection(response.connection(), explanation, response);
  }
  return grpc::Status::OK;
}

grpc::Status NodeService::Explain(grpc::ServerContext* /*context*/,
                                  const v1::ExplainRequest* request,
                                  v1::ExplainResponse* response) {
  const auto question = read_question(*request);
  if (!question) {
    return {grpc::StatusCode::INVALID_ARGUMENT, question.error().message};
  }
  core::TablePtr table;
  publish::Publisher::StatePtr state;
  std::string ingress;
  for (int i = 0; i < kTries && (i == 0 || table != publisher_.table()); ++i) {
    table = publisher_.table();
    if (table == nullptr) {
      return {grpc::StatusCode::FAILED_PRECONDITION, "no snapshot yet: nothing is decided"};
    }
    ingress = ingress_of(*question, *table);
    const auto decision = core::decide(*table, {question->tuple, ingress});
    state = decision.service == nullptr
                ? nullptr
                : publisher_.state_of(compile::service_of(*decision.service));
  }
  const auto& options = publisher_.options();
  auto explanation = compile::explain(
      {*table, {question->tuple, ingress}, state.get(), options.node, options.profile});
  if (view_ != nullptr) {
    keep_sources_of_host(*view_, *table, explanation);
    drop_martian(*view_, {question->tuple, ingress}, explanation);
  }
  response->set_generation(table->generation());
  fill_explanation(explanation, *response);
  return explain_on_workers(question->tuple, *table, explanation, *response);
}

}  // namespace sluice::server
