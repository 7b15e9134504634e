// How the processes of a launch find each other: a token that all of them know, and the
// coordinator's address.
//
// The first line of a token file is the token. In a file that Drover has made, in a folder that all
// hosts share, the second line is the coordinator's address.
#pragma once

#include <functional>
#include <string>

#include "core/result.h"
#include "core/time.h"
#include "launch/cluster_placement.h"
#include "node/acceptor.h"
#include "wire/control.h"

namespace drover {

// Where the token is. Exactly one of the two is set.
struct TokenPlace {
  std::string text;  // the token itself, from DROVER_TOKEN
  std::string file;
};

// --token-file, then DROVER_TOKEN, then a file in the user's cache that is named after the launch.
Result<TokenPlace> find_token_place(const Environment& environment, const std::string& token_file,
                                    const std::string& launch);

// A token is any text of at least kTokenLettersMin letters. One that Drover makes also contains the
// run's number.
inline constexpr size_t kTokenLettersMin = 16;
Result<RunKey> key_from(const std::string& token);

// The contents of a token file.
struct Invited {
  RunKey key;
  std::string token;    // as it is written in the file
  std::string address;  // the coordinator's; empty: not in the file
};
// An error if users other than its owner can read it.
Result<Invited> read_token_file(const std::string& path);
// Atomic: a reader sees the old file or the new one.
Status write_token_file(const std::string& path, const std::string& token,
                        const std::string& address);

// The coordinator's side: reads the token from its place, or makes one for `run`. A token file that
// the user has made is not changed.
class TokenHost {
 public:
  static Result<TokenHost> open(const TokenPlace& place, RunId run);
  const RunKey& key() const { return key_; }
  // Writes the address at which the coordinator listens to the token file, if that is Drover's.
  Status invite(const std::string& address);
  // The run is over: removes the token file, if it is Drover's.
  void close();

 private:
  RunKey key_;
  std::string token_;
  std::string file_;  // a file made by Drover; empty: there is none
};

// Where the coordinator may be.
struct KnownAddress {
  std::string given;  // by the user; takes precedence over the token file
  // Used if neither the user nor the token file gives one; "": unknown.
  std::function<std::string(const RunKey&)> otherwise;
};

// The other processes' side: waits until the coordinator listens at its address, for at most
// `patience`. Addresses may have host names ("tcp:node1:29600"); the one returned is numeric.
Result<Invited> find_coordinator(const TokenPlace& place, const KnownAddress& known,
                                 Duration patience);

// Asks the coordinator at `address` for the index of a worker that joins the run.
Result<PlaceOffer> ask_for_place(const std::string& address, const RunKey& key, Duration patience);

}  // namespace drover
