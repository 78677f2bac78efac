// Package liars proves that no single source's word decides: one of three endpoints, or of three price sources, gives
// wrong answers of one kind, and the real scanner, statevm, planner and sender go on as if it did not. With one of two
// lying, nothing wrong is done, and what waits says for what.
//
// KEEPER_LIARS=full runs every row (`make liars`), KEEPER_LIARS=short those that say most. The endpoints are on
// 127.0.0.1 to 127.0.0.3, because two of one host count as one.
package liars
