"""The console's URLs; `/` redirects to it."""

from django.urls import path
from django.views.generic import RedirectView

from console import pages

app_name = "console"

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="console:home"), name="root"),
    path("console", pages.home, name="home"),
    path("console/style.css", pages.style, name="style"),
]
