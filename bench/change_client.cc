#include "bench/change_client.h"

namespace sluice::bench {
namespace {

std::shared_ptr<grpc::Channel> connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

ChangeClient::ChangeClient(const std::string& address)
    : channel_(connect(address)), stub_(v1::Cluster::NewStub(channel_)), raw_(channel_) {}

grpc::Status ChangeClient::update(const v1::UpdateRequest& request, v1::UpdateResponse& response) {
  grpc::ClientContext context;
  return stub_->Update(&context, request, &response);
}

grpc::Status ChangeClient::nothing() {
  grpc::ClientContext context;
  const grpc::ByteBuffer request(nullptr, 0);
  const auto call =
      raw_.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue_);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, this);
  done();
  return status;
}

ChangeClient::Encoded ChangeClient::encode(const std::vector<v1::ReplaceSnapshotRequest>& parts) {
  Encoded encoded;
  for (const auto& part : parts) {
    const grpc::Slice bytes(part.SerializeAsString());
    encoded.emplace_back(&bytes, 1);
  }
  return encoded;
}

bool ChangeClient::done() {
  void* tag = nullptr;
  bool went = false;
  return queue_.Next(&tag, &went) && went;
}

grpc::Status ChangeClient::replace(const Encoded& parts, v1::ReplaceSnapshotResponse& response) {
  grpc::ClientContext context;
  const auto call = raw_.PrepareCall(&context, "/sluice.v1.Cluster/ReplaceSnapshot", &queue_);
  call->StartCall(this);
  bool well = done();
  for (std::size_t i = 0; well && i < parts.size(); ++i) {
    call->Write(parts[i], this);
    well = done();
  }
  if (well) {
    call->WritesDone(this);
    done();
  }
  grpc::ByteBuffer answer;
  call->Read(&answer, this);
  const bool answered = done();
  grpc::Status status;
  call->Finish(&status, this);
  done();
  if (answered && status.ok()) {
    grpc::Slice bytes;
    if (!answer.DumpToSingleSlice(&bytes).ok() ||
        !response.ParseFromArray(bytes.begin(), static_cast<int>(bytes.size()))) {
      return {grpc::StatusCode::INTERNAL, "the answer cannot be read"};
    }
  }
  return status;
}

}  // namespace sluice::bench
