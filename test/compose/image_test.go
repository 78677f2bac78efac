package compose

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// programsOf reads from a Dockerfile which programs its images hold, by image. It knows this project's two images
// alone.
func programsOf(dockerfile string) map[string]string {
	stages := map[string]string{}
	name := ""
	for line := range strings.Lines(dockerfile) {
		if from := regexp.MustCompile(`^FROM \S+ AS (\S+)`).FindStringSubmatch(line); from != nil {
			name = from[1]
		}
		stages[name] += line
	}
	listed := regexp.MustCompile(`for b in (.*); do`).FindStringSubmatch(stages["build"])
	images := map[string]string{}
	for image, stage := range map[string]string{"perpkeeper": stages["keeper"], "perpkeeper-devnet": stages["devnet"]} {
		if listed != nil && strings.Contains(stage, "COPY --from=build /out /bin\n") {
			for b := range strings.FieldsSeq(listed[1]) {
				images[image] += " /bin/" + b + " "
			}
		}
		for _, copied := range regexp.MustCompile(`COPY --from=\S+ \S+ (/bin/\S+)\n`).FindAllStringSubmatch(stage, -1) {
			images[image] += " " + copied[1] + " "
		}
	}
	return images
}

// Every service's image has the programs that it is started and checked with, and a region's image has no devnet.
func TestImagesHoldTheirPrograms(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	images := programsOf(string(text))
	if strings.Contains(images["perpkeeper"], "devnet") || !strings.HasSuffix(string(text), "USER 65532:65532\n") {
		t.Errorf("the image of a region holds%s", images["perpkeeper"])
	}
	last := string(text)[strings.LastIndex(string(text), "\nFROM "):]
	if !strings.HasPrefix(last, "\nFROM scratch AS keeper\n") {
		t.Error("the Dockerfile's last stage, which is built by default, is not the keeper's")
	}
	project, err := load(t, region(t), "demo")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for name, s := range project.Services {
		image, ours := strings.CutSuffix(s.Image, ":latest")
		if !ours {
			continue
		}
		seen++
		wanted := append([]string{}, s.Command...)
		if s.HealthCheck != nil && !s.HealthCheck.Disable {
			wanted = append(wanted, s.HealthCheck.Test...)
		}
		for _, word := range wanted {
			if strings.HasPrefix(word, "/bin/") && !strings.Contains(images[image], fmt.Sprintf(" %s ", word)) {
				t.Errorf("%s is started with %s, and %s holds%s", name, word, image, images[image])
			}
		}
	}
	if seen < 6 {
		t.Errorf("%d services have an image of ours", seen)
	}
}
