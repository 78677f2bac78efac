// Package snapshot is the file format in which a generation of the state is kept outside the database: a manifest, and
// a file per partition of the log topic with the rows of its tables as PostgreSQL copies them (COPY, binary),
// compressed by zstd. It knows neither SQL nor where files are kept.
//
// # Guaranteed
//
//   - A snapshot is there as a whole or not at all: the manifest is written last, and what has none is no snapshot.
//   - What was torn or altered is refused, in one line: the manifest is checked against its own checksum, each file
//     against size and SHA-256 in the manifest, each table against its number of rows. No database is asked.
//   - Nothing is held in memory whole: rows stream through both ways.
//
// # Not guaranteed
//
//   - Checksums say that a snapshot is what was written, not who wrote it: whoever can write to where it is kept can
//     write another one. The fingerprint of the record before its offset is compared by whoever goes on from it.
//   - A file is known to be whole only at its end. What was read of it before counts for nothing if the end says so.
package snapshot
