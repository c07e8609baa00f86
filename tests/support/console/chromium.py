"""Debian's Chromium, without a window, that its driver moves as a person does."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select

from tests.support.waiting import until

PROGRAMS = ("chromium", "chromedriver")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
)
WIDE, NARROW = 1280, 375
MOST_STEPS = 80
"""So often Tab is pressed until something has to have the focus."""


class Person:
    """Somebody before a browser, at `home`, the origin of the pages."""

    def __init__(self, driver: webdriver.Chrome, home: str) -> None:
        self.driver, self.home = driver, home.rstrip("/")

    def open(self, path: str, **query: str) -> None:
        """Open a page of the console."""
        words = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
        self.driver.get(f"{self.home}{path}" + (f"?{words}" if words else ""))

    @property
    def title(self) -> str:
        return self.driver.find_element(By.TAG_NAME, "h1").text

    @property
    def text(self) -> str:
        return self.driver.find_element(By.TAG_NAME, "body").text

    def fill(self, **fields: str) -> None:
        """Write into fields, by their names."""
        for name, value in fields.items():
            element = self.driver.find_element(By.CSS_SELECTOR, f'main [name="{name}"]')
            if element.tag_name == "select":
                Select(element).select_by_value(value)
            else:
                element.clear()
                element.send_keys(value)

    def press(self, words: str) -> None:
        """Press the button or follow the link with these words, and wait for the page behind it."""
        path = f"//*[self::button or self::a][normalize-space()={_literal(words)}]"
        self._leave(lambda: self.click(By.XPATH, path))

    def click(self, by: str, path: str) -> None:
        """Click on an element, or on what has taken its place since it was found."""
        until(lambda: self._clicked(self.driver.find_element(by, path)))

    def _clicked(self, element: WebElement) -> bool:
        try:
            element.click()
        except StaleElementReferenceException:  # its region has been brought up to date
            return False
        return True

    def _leave(self, act: Callable[[], None]) -> None:
        before = self.driver.find_element(By.TAG_NAME, "html").id
        act()
        until(lambda: self._is_another(before))

    def _is_another(self, before: str) -> bool:
        found = self.driver.find_elements(By.TAG_NAME, "html")
        return (
            bool(found)
            and found[0].id != before
            and bool(self.driver.find_elements(By.TAG_NAME, "h1"))
        )

    def log_on(self, name: str, password: str = "secret") -> None:
        """By the form."""
        self.driver.delete_all_cookies()
        self.open("/")
        self.fill(account=name, password=password)
        self.press("Log on")

    def type(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def tab_to(self, words: str) -> None:
        """Press Tab until what has these words as text, label or name has the focus."""
        for _ in range(MOST_STEPS):
            if words in self.focused():
                return
            self.type(Keys.TAB)
        raise AssertionError(f"Tab does not reach {words!r} on {self.driver.current_url}")

    def enter(self) -> None:
        """Press Enter, and wait for the page behind it."""
        self._leave(lambda: self.type(Keys.ENTER))

    def focused(self) -> Sequence[str]:
        """By what a person knows the element that has the focus."""
        script = (
            "const e = document.activeElement;"
            "return [e, ...(e.labels || [])].map(each => each.textContent.trim())"
        )
        return [str(each) for each in self.driver.execute_script(script)]

    def look(self, width: int = WIDE, scheme: str = "light") -> None:
        """Take a window of another width, and dark or light."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False},
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def scrolls_sideways(self) -> bool:
        """Whether the page is wider than the window."""
        script = "const e = document.documentElement; return e.scrollWidth > e.clientWidth"
        return bool(self.driver.execute_script(script))

    def complaints(self) -> list[str]:
        """What the browser has complained of since the last time."""
        entries: list[dict[str, Any]] = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [str(each["message"]) for each in entries if each["level"] == "SEVERE"]


@contextmanager
def person(home: str, *, scripts: bool = True) -> Iterator[Person]:
    """A browser of its own; it ends with the block."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for each in (*OPTIONS, f"--window-size={WIDE},800"):
        options.add_argument(each)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if not scripts:
        setting = {"profile.managed_default_content_settings.javascript": 2}
        options.add_experimental_option("prefs", setting)
    service = webdriver.ChromeService("/usr/bin/chromedriver")
    driver = webdriver.Chrome(options, service)
    try:
        driver.set_page_load_timeout(30)
        yield Person(driver, home)
    finally:
        driver.quit()


def _literal(words: str) -> str:
    assert '"' not in words
    return f'"{words}"'
