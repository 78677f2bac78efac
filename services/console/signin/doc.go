// Package signin decides who may use the console: users with bcrypt hashes in a file, and sessions.
//
// # Guaranteed
//
// There is no default password. A session ends after [Life], when its browser signs out, when its user's line of the
// file is changed or removed, and with the process: sessions are kept in memory, so that who reads the database, or a
// copy of it, finds none. The right password is never refused. A wrong one is answered late, and an address has one
// password checked at a time, so that somebody who guesses does not keep others out.
//
// # Not guaranteed
//
// A second factor. Whoever can write the file can sign in. Somebody who guesses from an operator's own address slows
// that operator down.
package signin
