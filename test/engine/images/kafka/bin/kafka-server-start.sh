#!/bin/bash
exec java ${KAFKA_HEAP_OPTS:--Xmx1G -Xms1G} -server -XX:+UseG1GC -Dlog4j2.configurationFile=/etc/kafka/docker/log4j2.properties \
	${KAFKA_OPTS:-} -cp "/opt/kafka/libs/*" kafka.Kafka "$@"
