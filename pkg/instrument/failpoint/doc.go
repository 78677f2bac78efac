// Package failpoint lets a test kill a process at a named point of its code: really, by SIGKILL, with nothing deferred
// and nothing flushed.
//
// A process built with the tag failpoint that is started with KEEPER_FAILPOINT="name:n" kills itself when it reaches
// that point for the n-th time (n counts from 1, and is 1 where ":n" is left out). Without the tag [Hit] is an empty
// function, which the compiler removes: what is shipped holds no point.
//
// Names are "<service>.<what is about to happen or has happened>", such as "scanner.claim.before".
package failpoint

// Env is the environment variable that names the point: "name:n".
const Env = "KEEPER_FAILPOINT"
