// Package wire encodes and decodes the records of every topic: the record, its headers, the protobuf schema of each
// value, the routing of keys to partitions and the list of topics.
//
// Every record carries the headers t (what the value is), sv (schema version), ep (the scanner's epoch) and fv (filter
// version); the end of a block without records has them in one, e. A reader that meets an unknown t or a higher sv gets
// an error and must stop: it never skips. The golden files under testdata pin the bytes of every message, so that a
// change of the schema cannot go unnoticed.
package wire
