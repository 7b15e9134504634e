// How the processes of a launch find each other: a token that all of them know, and the
// coordinator's address.
//
// A token file has the token in its first line. One that Drover has made has the coordinator's
// address in its second; it lies where all hosts can read it.
#pragma once

#include <functional>
#include <string>

#include "core/result.h"
#include "core/time.h"
#include "launch/cluster_placement.h"
#include "node/acceptor.h"
#include "wire/control.h"

namespace drover {

// Where the token is. One of the two is set.
struct TokenPlace {
  std::string text;  // the token itself, from DROVER_TOKEN
  std::string file;
};

// --token-file, then DROVER_TOKEN, then a file in the user's cache that is named after the launch.
Result<TokenPlace> find_token_place(const Environment& environment, const std::string& token_file,
                                    const std::string& launch);

// Any text of at least kTokenLettersMin letters will do for a token; one that Drover makes also
// tells the run's number.
inline constexpr size_t kTokenLettersMin = 16;
Result<RunKey> key_from(const std::string& token);

// What a token file says.
struct Invited {
  RunKey key;
  std::string token;    // as it is written there
  std::string address;  // empty: it does not say
};
// An error if others than its owner can read it.
Result<Invited> read_token_file(const std::string& path);
// Whoever reads it meanwhile sees the old one or the new one, whole.
Status write_token_file(const std::string& path, const std::string& token,
                        const std::string& address);

// The coordinator's side: the key, from the place or made anew for `run`. A file that somebody else
// has made is left as it is.
class TokenHost {
 public:
  static Result<TokenHost> open(const TokenPlace& place, RunId run);
  const RunKey& key() const { return key_; }
  // Tells where the coordinator listens.
  Status invite(const std::string& address);
  // The run is over: what was made is removed.
  void close();

 private:
  RunKey key_;
  std::string token_;
  std::string file_;  // ours; empty: there is none
};

// Where the coordinator may be.
struct KnownAddress {
  std::string said;  // by the user; wins over what the token file says
  std::function<std::string(const RunKey&)> otherwise;  // if that says nothing; "": nobody knows
};

// The others' side: waits until somebody listens at the coordinator's address, but not for longer.
// Addresses may have names of hosts ("tcp:node1:29600"); the answer's is numeric.
Result<Invited> find_coordinator(const TokenPlace& place, const KnownAddress& known,
                                 Duration patience);

// `address` is the coordinator's.
Result<PlaceOffer> ask_for_place(const std::string& address, const RunKey& key, Duration patience);

}  // namespace drover
