// Keys of a run as text, and proofs that a peer knows the token.
#include "node/credentials.h"

#include <gtest/gtest.h>

#include <set>

#include "wire/limits.h"

namespace drover {
namespace {

std::string hex(const std::string& bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

TEST(RunKey, IsTheSameAfterATripThroughText) {
  const RunKey key{.run = ~uint64_t{0}, .token = "abc-def"};
  const auto read = parse_run_key(to_text(key));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().run, key.run);
  EXPECT_EQ(read.value().token, key.token);
}

TEST(RunKey, RefusesOtherText) {
  for (const char* text : {"", "-", "12", "12-", "-abc", "x12-abc", "99999999999999999999999-abc"})
    EXPECT_FALSE(parse_run_key(text).ok()) << text;
}

class ProofTest : public ::testing::Test {
 protected:
  const RunKey key_{.run = 0x0102030405060708, .token = "abc-def"};
  const Nonces nonces_{std::string(kNonceBytes, 'A'), std::string(kNonceBytes, 'C')};
};

// Made with Python's hmac and hashlib, for protocol version 6.
TEST_F(ProofTest, IsTheHmacOfTheStatement) {
  EXPECT_EQ(hex(prove_connector(key_, nonces_)),
            "6f89a02e832a7e197774a7c856b2077dc27fe246df5f513052d4a0243b753701");
  EXPECT_EQ(hex(prove_acceptor(key_, nonces_)),
            "1e737c3bff24ef6cae6091e1f06884713f971df114443ad04059b026f14ded01");
}

TEST_F(ProofTest, DependsOnEveryPartOfTheStatement) {
  RunKey other_token = key_;
  other_token.token.back() ^= 1;
  RunKey other_run = key_;
  other_run.run ^= uint64_t{1} << 63;
  Nonces other_acceptor = nonces_;
  other_acceptor.acceptor.back() ^= 1;
  Nonces other_connector = nonces_;
  other_connector.connector.front() ^= 1;
  const Nonces swapped{nonces_.connector, nonces_.acceptor};
  const std::set<std::string> proofs{
      prove_connector(key_, nonces_),        prove_acceptor(key_, nonces_),
      prove_connector(other_token, nonces_), prove_connector(other_run, nonces_),
      prove_connector(key_, other_acceptor), prove_connector(key_, other_connector),
      prove_connector(key_, swapped),        prove_acceptor(key_, swapped),
      prove_acceptor(key_, other_acceptor),  prove_acceptor(key_, other_connector)};
  EXPECT_EQ(proofs.size(), 10U);
}

TEST_F(ProofTest, IsComparedToTheLastByte) {
  const std::string proof = prove_connector(key_, nonces_);
  EXPECT_TRUE(same_proof(proof, std::string(proof)));
  for (size_t i = 0; i < proof.size(); ++i) {
    std::string other = proof;
    other[i] = static_cast<char>(other[i] ^ 0x80);
    EXPECT_FALSE(same_proof(proof, other)) << i;
  }
  EXPECT_FALSE(same_proof(proof, proof.substr(1)));
  EXPECT_FALSE(same_proof(proof, ""));
}

TEST(Nonce, IsNeverRepeated) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string nonce = make_nonce();
    EXPECT_EQ(nonce.size(), kNonceBytes);
    EXPECT_TRUE(seen.insert(nonce).second);
  }
}

}  // namespace
}  // namespace drover
