#include "control/server/connection_row.h"

#include "control/server/names.h"

namespace sluice::server {

void fill_connection(const pipeline::ConnectionRow& from, const core::ForwardingTable* table,
                     v1::ConnectionRow& to) {
  to.set_protocol(std::string(core::protocol_name(from.flow.protocol)));
  to.set_client(core::to_string(from.flow.src));
  to.set_client_port(from.flow.sport);
  to.set_vip(core::to_string(from.flow.dst));
  to.set_vip_port(from.flow.dport);
  to.set_backend(core::to_string(from.backend));
  to.set_backend_port(from.backend_port);
  to.set_source(core::to_string(from.snat));
  to.set_source_port(from.snat_port);
  to.set_state(std::string(state_text(from.state)));
  to.set_mode(std::string(mode_text(from.mode)));
  const auto* block = table == nullptr ? nullptr : table->service(from.service);
  to.set_service(block == nullptr ? "" : block->name);
  to.set_worker(from.worker);
  to.set_age_ms(from.age_ms);
  to.set_idle_ms(from.idle_ms);
}

}  // namespace sluice::server
