import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Posts requests to a queue manager: java Post.java URL DIRECTORY
 *
 * <p>Each request is N.headers (the target, then one "Name: value" to a line) and N.body in the
 * directory. Prints the status of each answer. One connection is kept.
 */
public class Post {
    public static void main(String[] arguments) throws Exception {
        // HTTP/2 is Java's first choice: without TLS it asks for an upgrade in each request.
        HttpClient client = HttpClient.newHttpClient();
        List<Path> all;
        try (var files = Files.list(Path.of(arguments[1]))) {
            all = files.filter(path -> path.toString().endsWith(".headers")).sorted().toList();
        }
        for (Path path : all) {
            List<String> lines = Files.readAllLines(path);
            var request = HttpRequest.newBuilder(URI.create(arguments[0] + lines.get(0)));
            for (String line : lines.subList(1, lines.size())) {
                String[] header = line.split(": ", 2);
                request.header(header[0], header[1]);
            }
            Path body = Path.of(path.toString().replace(".headers", ".body"));
            request.POST(BodyPublishers.ofFile(body));
            System.out.println(client.send(request.build(), BodyHandlers.discarding()).statusCode());
        }
    }
}
