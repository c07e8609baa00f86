"""Sites, queue managers and the ways between them: a picture, and the same in tables."""

from collections import Counter

from rpcqm.console.asked import Asked, Page, Shown
from rpcqm.console.drawing import MOST_SITES, Site, graph_picture
from rpcqm.console.paging import paged

PATH = "/console/routing"
TABLES = ("sites", "links", "machines")


async def show(asked: Asked) -> Shown:
    """The graph of the directory."""
    graph = asked.operations.routing.graph(asked.identity)
    sites = {each.identifier: each.name for each in graph.sites}
    machines = {each.identifier: each.name for each in graph.queue_managers}
    inside = Counter(site for each in graph.queue_managers for site in each.sites)
    shown_sites = paged(asked, PATH, graph.sites, "sites", TABLES)
    shown_links = paged(asked, PATH, graph.links, "links", TABLES)
    shown_machines = paged(asked, PATH, graph.queue_managers, "machines", TABLES)
    picture = None
    if 0 < len(graph.sites) <= MOST_SITES:
        picture = graph_picture(
            [
                Site(
                    str(each.identifier),
                    each.name,
                    inside[each.identifier],
                    [
                        machine.name
                        for machine in graph.queue_managers
                        if machine.routing_server and each.identifier in machine.sites
                    ],
                    each.here,
                )
                for each in graph.sites
            ],
            [(str(each.site1), str(each.site2), each.cost) for each in graph.links],
        )
    return Shown(
        {
            "picture": picture,
            "sites": [(each, inside[each.identifier]) for each in shown_sites.rows],
            "sites_paged": shown_sites,
            "links_paged": shown_links,
            "machines_paged": shown_machines,
            "machines": [
                (
                    each,
                    [sites.get(site, str(site)) for site in each.sites],
                    [machines.get(server, str(server)) for server in each.out_servers],
                )
                for each in shown_machines.rows
            ],
            "links": [
                (
                    sites.get(each.site1, str(each.site1)),
                    sites.get(each.site2, str(each.site2)),
                    each.cost,
                    [machines.get(gate, str(gate)) for gate in each.gates],
                )
                for each in shown_links.rows
            ],
        }
    )


PAGES = (
    Page(
        PATH,
        "routing.title",
        "routing.html",
        show,
        entry="routing.title",
        administrators=True,
    ),
)
