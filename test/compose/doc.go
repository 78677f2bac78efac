// Package compose checks docker-compose.yml with Compose's own loader, no engine needed.
package compose
