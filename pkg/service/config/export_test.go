package config

// Sections shows the list to the tests.
var Sections = sections
