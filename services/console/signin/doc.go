// Package signin decides who may use the console: users with argon2id hashes in a file, sessions, and how often
// somebody may try a password.
//
// # Guaranteed
//
// There is no default password. A file without users opens by a link that is used once and is written to the log alone.
// A session ends after [Life], when it is revoked, when its user's line of the file is changed or removed, and with the
// process: sessions are kept in memory, so that who reads the database, or a copy of it, finds none, and a restart asks
// everybody for the password again. A console is one process with a handful of people.
//
// # Not guaranteed
//
// A second factor. Whoever can write the file can sign in.
package signin
