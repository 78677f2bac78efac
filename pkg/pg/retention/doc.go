// Package retention keeps the tables that a sender works with as small as on its first day: what ended some days ago
// moves to an archive, and what is older than an operator wants to keep is dropped from there, a week at a time.
//
// Guaranteed, given a [Store] that keeps its promises: the work is done in the background, in small steps with pauses
// between them that are longer than the steps; several processes do not get in each other's way; a step that fails is
// tried again, and stops nothing else.
// Not guaranteed: when a row moves. It does some time after it may.
package retention
