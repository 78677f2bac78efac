// Package kafka runs the bus's suite on Apache Kafka.
package kafka
